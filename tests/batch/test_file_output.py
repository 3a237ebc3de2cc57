"""Files of sinks: visible when the job has succeeded, written once however often tasks run."""

import pytest

from ekorn.batch.outputs.file_output import CsvLinesFormat, FileOutput, TextLinesFormat, WriteMode
from ekorn.batch.outputs.output import SinkSubtask, WriteResult
from ekorn.common import Row, Types
from ekorn.dataset import ExecutionEnvironment
from ekorn.errors import ConfigurationError, InvalidProgramError, OutputExistsError, RecordTypeError
from ekorn.testing import on_local_engine
from tests.s3_server import running_server, url_of

JOB = "0" * 32


def written(output, *partitions):
    """Write partitions as the tasks do, each twice: the second result is the one that arrives."""
    results = []
    for number, records in enumerate(partitions):
        subtask = SinkSubtask(number, len(partitions), JOB)
        output.write(records, subtask)
        results.append(WriteResult(number, output.write(records, subtask)))
    return results


def committed(output, *partitions):
    output.begin(len(partitions))
    output.commit(written(output, *partitions), JOB, len(partitions))


def texts(path, mode=WriteMode.NO_OVERWRITE):
    return FileOutput(str(path), TextLinesFormat(), mode)


def test_one_subtask_writes_a_file_and_several_write_a_directory(tmp_path):
    committed(texts(tmp_path / "file"), ["a", 1])
    committed(texts(tmp_path / "folder"), ["a"], [], ["b", "c"])
    assert (tmp_path / "file").read_text() == "a\n1\n"
    assert {each.name: each.read_text() for each in (tmp_path / "folder").iterdir()} == {
        "1": "a\n",
        "2": "",
        "3": "b\nc\n",
    }
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]


def test_nothing_is_visible_before_the_commit_and_nothing_stays_after_an_abort(tmp_path):
    output = texts(tmp_path / "out")
    output.begin(2)
    written(output, ["a"], ["b"])
    assert all(each.name.startswith(".") for each in tmp_path.iterdir())
    (tmp_path / ".out.inprogress.of-another-job.1").write_text("theirs")
    output.abort(JOB, 2)
    assert [each.name for each in tmp_path.iterdir()] == [".out.inprogress.of-another-job.1"]


def test_a_format_that_fails_leaves_no_file(tmp_path):
    output = FileOutput(str(tmp_path / "out"), CsvLinesFormat(), WriteMode.NO_OVERWRITE)
    with pytest.raises(RecordTypeError, match="writes tuples and rows"):
        output.write([(1, 2), 3], SinkSubtask(0, 1, JOB))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("old", ["file", "folder"])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_what_exists_is_refused_or_replaced(tmp_path, old, parallelism):
    target = tmp_path / "out"
    if old == "file":
        target.write_text("old")
    else:
        target.mkdir()
        (target / "7").write_text("old")
    with pytest.raises(OutputExistsError, match=r"out'.*WriteMode.OVERWRITE"):
        texts(target).begin(parallelism)
    output = texts(target, WriteMode.OVERWRITE)
    output.begin(parallelism)
    results = written(output, *[["new"]] * parallelism)
    assert target.read_text() == "old" if old == "file" else (target / "7").read_text() == "old"
    output.commit(results, JOB, parallelism)
    found = [target] if parallelism == 1 else sorted(target.iterdir())
    assert [each.read_text() for each in found] == ["new\n"] * parallelism


def test_a_target_that_appears_while_the_job_runs_is_kept(tmp_path):
    output = texts(tmp_path / "out")
    output.begin(1)
    results = written(output, ["a"])
    (tmp_path / "out").write_text("theirs")
    with pytest.raises(OutputExistsError):
        output.commit(results, JOB, 1)
    assert (tmp_path / "out").read_text() == "theirs"


def test_two_sinks_of_a_program_do_not_share_a_target(tmp_path):
    env = ExecutionEnvironment().set_parallelism(1)
    numbers = env.from_elements(1, 2)
    numbers.write_as_text(tmp_path / "out", WriteMode.OVERWRITE)
    with pytest.raises(InvalidProgramError, match=r"TextSink at .* writes to the same path as TextSink at .*,"):
        numbers.map(lambda x: -x).write_as_text(f"{tmp_path}/out/", WriteMode.OVERWRITE)
    numbers.write_as_text(tmp_path / "other")
    with on_local_engine():
        env.execute()
        numbers.write_as_text(tmp_path / "out", WriteMode.OVERWRITE)  # in another run
        env.execute()
    assert (tmp_path / "out").read_text() == (tmp_path / "other").read_text() == "1\n2\n"


def test_a_charset_with_a_byte_order_mark_has_it_once(tmp_path):
    env = ExecutionEnvironment().set_parallelism(1)
    env.from_elements("ä", "b").write_as_text(tmp_path / "out", charset="UTF-16")
    with on_local_engine():
        env.execute()
        assert env.read_text_file(tmp_path / "out", "UTF-16").collect() == ["ä", "b"]
    with pytest.raises(ConfigurationError, match="no charset named 'nope'"):
        env.from_elements("a").write_as_text(tmp_path / "other", charset="nope")


def test_columns(tmp_path):
    typed = Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()])
    committed(
        FileOutput(str(tmp_path / "a"), CsvLinesFormat(type_info=typed), WriteMode.NO_OVERWRITE), [("x", 1e10, True)]
    )
    quoted = CsvLinesFormat("\r\n", "|", quotes_strings=True)
    committed(FileOutput(str(tmp_path / "b"), quoted, WriteMode.NO_OVERWRITE), [('say "hi"', None), Row("z", 2)])
    assert (tmp_path / "a").read_text() == "x,1.0E10,true\n"
    assert (tmp_path / "b").read_bytes() == b'"say ""hi"""|\r\n"z"|2\r\n'


@pytest.mark.heavy  # starts a server
def test_files_on_an_object_store():
    with running_server() as endpoint:
        address = url_of(endpoint, "out")
        committed(texts(address), ["a"], ["b"])
        from ekorn.storage.input_files import list_files, open_input

        assert [open_input(file.address).read() for file in list_files(address)] == [b"a\n", b"b\n"]
        with pytest.raises(OutputExistsError):
            texts(address).begin(2)
        committed(texts(address, WriteMode.OVERWRITE), ["c"])
        assert open_input(address).read() == b"c\n"
