"""JDBC on Spark: slots that are killed while rows are committed, and rows that are read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ekorn.common import Configuration, RestartStrategies, Row, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink, JdbcSource
from tests.servers.postgres import PASSWORD, USER, PostgresServer, postgres_database, postgres_server, postgres_url

__all__ = ["postgres_database", "postgres_server", "postgres_url"]

ORDER = Types.ROW_NAMED(["id", "item"], [Types.INT(), Types.STRING()])
COUNT = 1500


def order(number: int) -> Row:
    return Row(id=number, item=f"item {number}")


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)


def test_slots_killed_while_rows_are_committed_lose_no_row_and_write_none_twice(
    postgres_server: PostgresServer,
    postgres_database: str,
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "faults").mkdir()
    monkeypatch.setenv("EKORN_FAULT", "jdbc-rows:0:2:kill,sink-committed:1:2:kill,sink-recover:*:1:kill")
    monkeypatch.setenv("EKORN_FAULT_DIR", str(tmp_path / "faults"))
    with postgres_server.connect(postgres_database) as connection:
        connection.execute("CREATE TABLE orders (id INT, item TEXT)")
    options = JdbcConnectionOptions(postgres_url, user_name=USER, password=PASSWORD)
    env = environment()
    env.enable_checkpointing(100).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    source = DataGeneratorSource(order, COUNT, RateLimiterStrategy.per_second(COUNT / 3), ORDER)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders").key_by(lambda row: row.id)
    written = stream.map(lambda row: row, ORDER)
    written.add_sink(JdbcSink.exactly_once_sink("INSERT INTO orders VALUES (?, ?)", ORDER, options))
    env.execute("write orders")
    assert len(list((tmp_path / "faults").iterdir())) == 3, "every slot was killed where it should be"

    read = JdbcSource.builder().set_db_url(postgres_url).set_username(USER).set_password(PASSWORD)
    orders = read.set_sql("SELECT * FROM orders").set_partition_column("id", 4).build()
    rows = environment().from_source(orders, WatermarkStrategy.no_watermarks(), "orders")
    with rows.map(lambda row: (row.id, row.item)).execute_and_collect("read orders") as results:
        found = sorted(results)
    assert found == [tuple(order(number)) for number in range(COUNT)]
