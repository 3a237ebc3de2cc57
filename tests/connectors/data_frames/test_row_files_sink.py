"""The sink of rows under the contract of all exactly-once sinks, and the log by which streaming queries read it."""

import threading
import uuid
from pathlib import Path

import pytest

from ekorn.connectors.data_frames.commit_log import LOG, CommitLog
from ekorn.connectors.data_frames.row_files_sink import DATA, MARKS, RowFilesSink
from ekorn.errors import RecordTypeError, RowFilesDamaged, RowFilesGone
from ekorn.storage.file_store import open_files
from ekorn.storage.local import LocalFiles
from ekorn.table import Row
from ekorn.testing.kits import RefusesBadRecords, SinkCase, SinkJob
from tests.connectors.data_frames.row_files import ROW_TYPE, rows_of
from tests.connectors.sink_contract import SinkContract


class RowsCase(SinkCase):
    def __init__(self, folder, file_bytes=1 << 20):
        self.folder = folder
        self._file_bytes = file_bytes

    def sink(self):
        return RowFilesSink(str(self.folder), ROW_TYPE, file_bytes=self._file_bytes)

    def record(self, number):
        return Row(id=number, word=f"w{number}")

    def visible(self):
        return rows_of(self.folder, CommitLog(open_files(str(self.folder))).all_files())

    def spoil(self):
        return (
            Row(id=None, word="x"),
            RecordTypeError,
            r"ROW<id BIGINT, word .*>: column 'id' is not nullable and is None",
        )


class LoggedCase(RowsCase):
    """A streaming query looks at the folder all the time, and reads what the log says at the end."""

    def visible(self):
        log = CommitLog(open_files(str(self.folder)))
        number = log.advance()
        return rows_of(self.folder, log.files_between(0, number))


@pytest.mark.parametrize("kind", [RowsCase, LoggedCase])
class TestRowFilesSink(SinkContract, RefusesBadRecords):
    fault_points = ("row-file-mark",)

    @pytest.fixture
    def make_case(self, tmp_path, kind):
        return lambda: kind(tmp_path / uuid.uuid4().hex)


@pytest.mark.parametrize("record", [(1, "a"), [1, "a"], {"word": "a", "id": 1, "more": 2}, Row(word="a", id=1)])
def test_rows_tuples_and_dicts_are_written(tmp_path, record):
    case = RowsCase(tmp_path)
    job = SinkJob(case.sink(), 1)
    job.write(0, record)
    job.finish()
    assert case.visible() == [Row(id=1, word="a")]


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ((1,), "expected 2 fields, found 1"),
        (7, "found int"),
        ({"id": 1}, "no field 'word'"),
        (("x", "a"), "column 'id': .*'x'"),
    ],
)
def test_a_record_that_does_not_fit_is_shown_with_the_reason(tmp_path, record, says):
    job = SinkJob(RowsCase(tmp_path).sink(), 1)
    job.write(0, (1, "good"))
    job.write(0, record)
    with pytest.raises(RecordTypeError, match=says):
        job.begin_checkpoint()


def test_a_large_file_ends_before_the_checkpoint(tmp_path):
    case = RowsCase(tmp_path, file_bytes=1000)
    job = SinkJob(case.sink(), 1)
    for number in range(5000):
        job.write(0, case.record(number))
    job.finish()
    assert len(list((tmp_path / DATA).iterdir())) > 2
    assert [row.id for row in sorted(case.visible(), key=lambda row: row.id)] == list(range(5000))


def committed(case, parallelism=2, records=3):
    job = SinkJob(case.sink(), parallelism)
    for number in range(records):
        job.write(number, case.record(uuid.uuid4().int >> 66))
    job.finish()


def test_an_offset_stands_for_the_same_files_for_ever(tmp_path):
    case = RowsCase(tmp_path)
    log = CommitLog(open_files(str(tmp_path)))
    assert log.advance() == 0
    committed(case)
    assert log.advance() == 1
    first = log.files_between(0, 1)
    committed(case)
    later = CommitLog(open_files(str(tmp_path)))
    assert (log.advance(), later.advance()) == (2, 2)
    assert later.files_between(0, 1) == first
    assert not set(later.files_between(1, 2)) & set(first)
    assert later.advance() == 2, "an offset without new files is the old one"


def test_a_commit_repeated_after_a_crash_enters_no_file_twice(tmp_path):
    case, log = RowsCase(tmp_path), CommitLog(open_files(str(tmp_path)))
    job = SinkJob(case.sink(), 1)
    job.write(0, case.record(1))
    job.checkpoint()
    assert log.advance() == 1
    assert list((tmp_path / MARKS).iterdir()) == []
    job.crash(2)  # the restore commits again
    assert len(list((tmp_path / MARKS).iterdir())) == 1
    assert (log.advance(), CommitLog(open_files(str(tmp_path))).advance()) == (1, 1)
    assert list((tmp_path / MARKS).iterdir()) == []


class OvertakenFiles(LocalFiles):
    """Files in which another reader publishes an entry at the last moment."""

    def publish(self, path, data):
        other = CommitLog(open_files(self.url))
        committed(RowsCase(Path(self.url)), 1, 1)
        other.advance()
        super().publish(path, data)


def test_a_reader_that_comes_late_takes_over_the_entry_of_the_other(tmp_path):
    committed(RowsCase(tmp_path), 1, 1)
    late = CommitLog(OvertakenFiles(tmp_path))
    assert late.advance() == 1
    names = [file.name for file in late.files_between(0, 1)]
    assert len(names) == len(set(names)) == 2


def test_of_two_readers_at_once_none_enters_a_file_a_second_time(tmp_path):
    case = RowsCase(tmp_path)
    for _ in range(20):
        committed(case, 1, 1)
    logs = [CommitLog(open_files(str(tmp_path))) for _ in range(4)]
    threads = [threading.Thread(target=log.advance) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = CommitLog(open_files(str(tmp_path)))
    names = [file.name for file in log.files_between(0, log.advance())]
    assert len(names) == len(set(names)) == 20


def test_an_entry_that_is_gone_is_an_error(tmp_path):
    case, log = RowsCase(tmp_path), CommitLog(open_files(str(tmp_path)))
    committed(case)
    log.advance()
    next((tmp_path / LOG).iterdir()).unlink()
    with pytest.raises(RowFilesGone, match=LOG):
        CommitLog(open_files(str(tmp_path))).files_between(0, 1)


def test_a_damaged_entry_is_an_error_that_names_it(tmp_path):
    committed(RowsCase(tmp_path))
    CommitLog(open_files(str(tmp_path))).advance()
    next((tmp_path / LOG).iterdir()).write_bytes(b"{")
    with pytest.raises(RowFilesDamaged, match=r"log/000000000001\.json"):
        CommitLog(open_files(str(tmp_path))).advance()
