"""The source of batches under the contract of all sources, and the folder between a query and a job."""

import pytest

from ekorn.connectors.data_frames.row_batches import Lane, batch_path
from ekorn.connectors.data_frames.row_batches_source import RowBatchesSource
from ekorn.errors import RowFilesDamaged, RowFilesGone, StreamingQueryFailed
from ekorn.testing.kits import FindsNewInput, RefusesBadInput, SourceCase, SourceJob
from tests.connectors.data_frames.row_files import ROW_TYPE, Query, rows, write_part


class BatchesCase(SourceCase):
    """Batches of three files, of one, of none, and of an empty one; their ids need not begin at 0."""

    records = rows(0, 7) + rows(10, 2) + rows(20, 5) + rows(30, 6)

    def __init__(self, folder):
        self.query = Query(folder)
        self.query.batches.begin()
        self.query.batch(4, rows(0, 7), rows(10, 2), rows(20, 5))
        self.query.batch(5)
        self.query.batch(6, rows(30, 6))
        self.query.batch(7, [])

    def bounded(self):
        self.query.batches.end("clicks", None)
        return self.query.source(bounded=True)

    def unbounded(self):
        return self.query.source()

    def add_input(self):
        self.query.batch(8, rows(40, 3), rows(50, 3))
        return rows(40, 3) + rows(50, 3)

    def spoil(self):
        part = next((self.query.folder / batch_path(6)).iterdir())
        part.write_bytes(part.read_bytes() + b"x")
        return RowFilesDamaged, r"000000000006/part-00000.*found \d+ bytes, expected"


class TestRowBatches(FindsNewInput, RefusesBadInput):
    @pytest.fixture
    def case(self, tmp_path):
        return BatchesCase(tmp_path)


@pytest.fixture
def query(tmp_path):
    made = Query(tmp_path)
    made.batches.begin()
    return made


def read_ids(job):
    return [row.id for row in job.read_available()]


def completed(source, job):
    """Tell the connections of a source that a checkpoint with the present positions is complete."""
    for number, queue in enumerate(job.readers):
        connection = source.connect(number)
        for split, reader in queue:
            connection.create_reader(split, reader.position()).close()
        connection.checkpoint_completed({split.id: reader.position() for split, reader in queue})


def test_a_lane_reads_batches_in_their_order(query):
    for number in range(5):
        query.batch(number, rows(number * 10, 3), rows(number * 10 + 3, 3))
    found = read_ids(SourceJob(query.source(lanes=1), 1))
    assert found == sorted(found)
    assert len(found) == 30


def test_a_batch_without_its_manifest_is_not_read(query):
    query.batch(0, rows(0, 2))
    write_part(query.folder / batch_path(1), 0, rows(10, 2))
    assert sorted(read_ids(SourceJob(query.source(), 1))) == [0, 1]


def test_a_batch_that_the_query_repeats_is_written_once(query):
    assert query.batch(0, rows(0, 2))
    again = Query(query.folder)
    again.batches.begin()
    assert not again.batch(0, rows(100, 2))
    assert again.batch(1, rows(10, 2))
    assert sorted(read_ids(SourceJob(again.source(), 1))) == [0, 1, 10, 11]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_batches_are_deleted_when_a_checkpoint_covers_them_and_not_before(query, parallelism):
    for number in range(4):
        query.batch(number, *[rows(number * 10 + part, 1) for part in range(3)])
    source = query.source(lanes=3)
    job = SourceJob(source, parallelism)
    assert len(job.read_available()) == 12
    query.batches.prune()
    assert query.batches.ready() == [0, 1, 2, 3]
    assert query.batches.unread() == 4
    completed(source, job)
    query.batches.prune()
    assert query.batches.ready() == [3], "the newest stays, so that its repetition is noticed"
    assert query.batches.unread() == 0
    assert list((query.folder / "batches").iterdir()) == []
    assert not query.batch(3, rows(99, 1))


def test_a_mark_that_is_being_written_is_not_taken_for_one(query):
    query.batch(0, rows(0, 1))
    query.batches.mark_read(Lane(0, 1), 1)
    (query.folder / "read" / "0-of-1.json.draft-90be3fad9e9ee95a").write_bytes(b"{")
    query.batches.prune()
    assert query.batches.unread() == 0


def test_a_lane_that_is_behind_keeps_its_batches(query):
    for number in range(3):
        query.batch(number, rows(number * 10, 2), rows(number * 10 + 5, 2))
    source = query.source()
    job = SourceJob(source, 2)
    while job.read(0, 100):
        pass
    job.read(1, 100)  # of batch 0 alone
    completed(source, job)
    query.batches.prune()
    assert query.batches.ready() == [0, 1, 2]


def test_a_new_job_begins_behind_what_a_completed_checkpoint_covered(query):
    query.batch(0, rows(0, 2))
    query.batch(1, rows(10, 2))
    source = query.source()
    job = SourceJob(source, 2)
    job.read_available()
    completed(source, job)
    again = Query(query.folder)
    again.batches.begin()
    again.batch(2, rows(20, 2))
    fresh = SourceJob(again.source(lanes=3), 3)
    assert read_ids(fresh) == [20, 21]
    assert read_ids(SourceJob(again.source(), 2, job.snapshot())) == [20, 21]


def test_marks_of_an_earlier_job_delete_nothing_that_a_new_one_reads(query):
    for number in range(3):
        query.batch(number, rows(number * 10, 2))
    source = query.source(lanes=1)
    first = SourceJob(source, 1)
    first.read(0, 2)
    first.read(0, 2)
    completed(source, first)  # in the middle of batch 1
    again = Query(query.folder)
    again.batches.begin()
    again.batches.prune()
    later = SourceJob(again.source(), 2)
    assert sorted(read_ids(later)) == [10, 11, 20, 21]
    completed(again.source(), later)
    again.batches.prune()
    assert again.batches.ready() == [2], "the lanes of the earlier job hold nothing back"


def test_an_older_checkpoint_whose_batches_are_gone_is_refused(query):
    query.batch(0, rows(0, 2))
    source = query.source(lanes=1)
    job = SourceJob(source, 1)
    job.read(0, 1)
    old = job.snapshot()
    for number in (1, 2):
        query.batch(number, rows(number * 10, 2))
    job.read_available()
    completed(source, job)
    query.batches.prune()
    with pytest.raises(RowFilesGone, match=r"batches/000000000000.* start from the newest checkpoint"):
        SourceJob(source, 1, old).read_available()


def test_the_failure_of_the_query_reaches_the_job_after_its_rows(query):
    query.batch(0, rows(0, 2))
    job = SourceJob(query.source(lanes=1), 1)
    query.batches.end("clicks", "no such topic")
    assert len(job.read(0, 10)) == 2
    with pytest.raises(StreamingQueryFailed, match="query 'clicks', whose rows the job reads, failed: no such topic"):
        job.read(0, 10)


def test_a_query_that_is_started_again_has_not_ended(query):
    query.batches.end("clicks", None)
    assert SourceJob(query.source(), 2).read_all() == []
    again = Query(query.folder)
    again.batches.begin()
    job = SourceJob(again.source(lanes=1), 1)
    assert job.read(0, 10) == []
    assert not job.done


def test_the_folder_is_looked_at_only_at_its_interval(query):
    source = RowBatchesSource(str(query.folder), ROW_TYPE, lanes=1, bounded=False, look_interval_ms=3_600_000)
    job = SourceJob(source, 1)
    assert job.read(0, 10) == []
    query.batch(0, rows(0, 2))
    assert job.read(0, 10) == []
