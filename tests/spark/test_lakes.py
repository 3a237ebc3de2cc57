"""Delta and Iceberg tables on Spark: slots that are killed while a checkpoint is committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ekorn.common import Configuration, RestartStrategies, Row, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.delta import DeltaSink, DeltaSource
from ekorn.types.data_types import DataTypes

ORDER = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("item", DataTypes.STRING())])
COUNT = 1500


def order(number: int) -> Row:
    return Row(number, f"item {number}")


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)


def test_slots_killed_around_a_commit_lose_no_row_and_write_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faults").mkdir()
    monkeypatch.setenv("EKORN_FAULT", "lake-commit:*:2:kill,lake-committed:*:3:kill")
    monkeypatch.setenv("EKORN_FAULT_DIR", str(tmp_path / "faults"))
    env = environment()
    env.enable_checkpointing(100).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    source = DataGeneratorSource(order, COUNT, RateLimiterStrategy.per_second(COUNT / 3))
    orders = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
    orders.key_by(lambda row: row[0]).map(lambda row: row).sink_to(DeltaSink(tmp_path / "table", ORDER))
    env.execute("write a table")
    assert len(list((tmp_path / "faults").iterdir())) == 2, "slots were killed where they should be"

    rows = environment().from_source(DeltaSource(tmp_path / "table"), WatermarkStrategy.no_watermarks(), "orders")
    with rows.map(lambda row: (row.id, row.item)).execute_and_collect("read a table") as results:
        found = sorted(results)
    assert found == [tuple(order(number)) for number in range(COUNT)]
