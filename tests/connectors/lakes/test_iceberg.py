"""`IcebergSink` and `IcebergSource`: one snapshot of the table per checkpoint, every row once."""

import pytest

from ekorn import faults
from ekorn.common import Configuration, RestartStrategies, Row, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.iceberg import IcebergSink, IcebergSource
from ekorn.errors import ConfigurationError
from ekorn.testing.kits import SourceCase, SourceJob, SourceKit
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from ekorn.types.data_types import DataTypes

ORDER = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("item", DataTypes.STRING())])
RECORDS = list(range(24))
NAME = "shop.orders"


def order(number):
    return Row(number, None if number % 5 == 0 else f"item {number}")


EXPECTED = [tuple(order(number)) for number in RECORDS]


def catalog(folder):
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}


def write(folder, script=None):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 0))
    source = env.from_source(ScriptedSource([RECORDS], [4]), WatermarkStrategy.no_watermarks(), "numbers")
    source.set_parallelism(1).rebalance().map(order).sink_to(IcebergSink("main", catalog(folder), NAME, ORDER))
    return run_scripted(env, script or Script())


def table(folder):
    from pyiceberg.catalog import load_catalog

    return load_catalog("main", **catalog(folder)).load_table(NAME)


def rows(folder):
    return sorted((row["id"], row["item"]) for row in table(folder).scan().to_arrow().to_pylist())


def test_a_checkpoint_is_one_snapshot_of_the_table(tmp_path):
    write(tmp_path)
    assert rows(tmp_path) == EXPECTED
    assert len(table(tmp_path).metadata.snapshots) == 5


@pytest.mark.parametrize("point", ["after-epoch", "before-notify", "in-notify", "after-notify"])
def test_a_kill_at_any_step_loses_no_row_and_writes_none_twice(tmp_path, point):
    write(tmp_path, Script(crashes=[Crash(point, 1), Crash(point, 3)], kill=True))
    assert rows(tmp_path) == EXPECTED


@pytest.mark.parametrize("fault", ["lake-commit", "lake-committed", "sink-recover"])
def test_a_failure_while_committing_is_made_good(tmp_path, fault, monkeypatch):
    monkeypatch.setenv("EKORN_FAULT", f"{fault}:*:1:error")
    faults.reset_counts()
    run = write(tmp_path, Script(crashes=[Crash("after-notify", 2)]))
    assert run.handle.progress().restarts >= 1
    assert rows(tmp_path) == EXPECTED


def test_a_table_with_other_columns_is_refused_at_the_call(tmp_path):
    IcebergSink("main", catalog(tmp_path), NAME, ORDER)
    other = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.STRING())])
    with pytest.raises(ConfigurationError, match=r"the table has the columns .*'item'"):
        IcebergSink("main", catalog(tmp_path), NAME, other)


class TableCase(SourceCase):
    records = EXPECTED

    def __init__(self, folder):
        self.folder = folder

    def bounded(self):
        return IcebergSource("main", catalog(self.folder), NAME)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("iceberg")
    write(folder)
    return folder


class TestTable(SourceKit):
    comparable = staticmethod(tuple)
    step = 4

    @pytest.fixture
    def case(self, lake):
        return TableCase(lake)


def test_a_source_reads_the_snapshot_it_was_given(lake):
    first = table(lake).metadata.snapshots[0].snapshot_id
    found = SourceJob(IcebergSource("main", catalog(lake), NAME, first), 1).read_all()
    assert 0 < len(found) < len(RECORDS)
