"""`DeltaSink` and `DeltaSource`: one version of the table per checkpoint, every row once."""

import pytest

from ekorn import faults
from ekorn.common import Configuration, RestartStrategies, Row, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.delta import DeltaSink, DeltaSource
from ekorn.errors import ConfigurationError
from ekorn.functions.sink_contract import CommitId, WriterContext
from ekorn.testing import collect_locally
from ekorn.testing.kits import SourceCase, SourceJob, SourceKit
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from ekorn.types.data_types import DataTypes

ORDER = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("item", DataTypes.STRING())])
RECORDS = list(range(24))


def order(number):
    return Row(number, None if number % 5 == 0 else f"item {number}")


def write(folder, script=None, parallelism=2):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(parallelism)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 0))
    source = env.from_source(ScriptedSource([RECORDS], [4]), WatermarkStrategy.no_watermarks(), "numbers")
    source.set_parallelism(1).rebalance().map(order).sink_to(DeltaSink(folder, ORDER))
    return run_scripted(env, script or Script())


def rows(folder):
    import deltalake

    found = deltalake.DeltaTable(folder).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["item"]) for row in found)


EXPECTED = [tuple(order(number)) for number in RECORDS]


def test_a_checkpoint_is_one_version_of_the_table(tmp_path):
    import deltalake

    write(tmp_path / "t")
    assert rows(tmp_path / "t") == EXPECTED
    assert deltalake.DeltaTable(tmp_path / "t").version() == 5, "the creation, and five checkpoints with rows"


@pytest.mark.parametrize("point", ["in-epoch", "after-epoch", "before-notify", "in-notify", "after-notify"])
def test_a_kill_at_any_step_loses_no_row_and_writes_none_twice(tmp_path, point):
    write(tmp_path / "t", Script(crashes=[Crash(point, 1), Crash(point, 3)], kill=True))
    assert rows(tmp_path / "t") == EXPECTED


@pytest.mark.parametrize("fault", ["lake-commit", "lake-committed", "sink-recover"])
def test_a_failure_while_committing_is_made_good(tmp_path, fault, monkeypatch):
    monkeypatch.setenv("EKORN_FAULT", f"{fault}:*:1:error")
    faults.reset_counts()
    run = write(tmp_path / "t", Script(crashes=[Crash("after-notify", 2)]))
    assert run.handle.progress().restarts >= 1
    assert rows(tmp_path / "t") == EXPECTED


def test_a_commit_is_not_repeated_after_its_files_were_compacted(tmp_path):
    import deltalake

    sink = DeltaSink(tmp_path / "t", ORDER)
    writers = [sink.create_writer(WriterContext(n, 2, 0, "job", "operator"), ()) for n in range(2)]
    for number in RECORDS:
        writers[number % 2].write(order(number), None)
    prepared = [file for writer in writers for file in writer.prepare_commit()]
    sink.create_global_committer().commit(CommitId("lineage", 1), prepared)
    deltalake.DeltaTable(tmp_path / "t").optimize.compact()
    sink.create_global_committer().commit(CommitId("lineage", 1), prepared)
    assert rows(tmp_path / "t") == EXPECTED


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_writer_that_is_closed_removes_the_file_that_no_checkpoint_names(tmp_path):
    sink = DeltaSink(tmp_path / "t", ORDER)
    writer = sink.create_writer(WriterContext(0, 1, 0, "job", "operator"), ())
    writer.write(order(1), None)
    writer.prepare_commit()
    writer.write(order(2), None)
    writer.close()
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1, "the prepared file stays"


def test_a_table_with_other_columns_is_refused_at_the_call(tmp_path):
    DeltaSink(tmp_path / "t", ORDER)
    other = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.STRING())])
    with pytest.raises(ConfigurationError, match=r"the table has the columns .*'item'"):
        DeltaSink(tmp_path / "t", other)


class TableCase(SourceCase):
    records = EXPECTED

    def __init__(self, folder):
        self.folder = folder

    def bounded(self):
        return DeltaSource(self.folder)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("delta") / "t"
    write(folder)
    return folder


class TestTable(SourceKit):
    comparable = staticmethod(tuple)
    step = 3

    @pytest.fixture
    def case(self, table):
        return TableCase(table)


def test_a_damaged_file_is_an_error(tmp_path):
    write(tmp_path / "t")
    next((tmp_path / "t").glob("*.parquet")).write_bytes(b"nothing")
    with pytest.raises(Exception, match="arquet"):
        SourceJob(DeltaSource(tmp_path / "t"), 1).read_all()


def test_a_source_reads_the_version_it_was_given(table):
    first = DeltaSource(table, version=1)
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    stream = env.from_source(first, WatermarkStrategy.no_watermarks(), "orders")
    assert len(collect_locally(stream.map(tuple))) < len(RECORDS)


def test_a_folder_that_is_no_table_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=f"cannot read '{tmp_path}"):
        DeltaSource(tmp_path)
