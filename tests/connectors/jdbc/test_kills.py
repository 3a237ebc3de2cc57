"""`JdbcSink.exactly_once_sink` in slot processes of which one is killed at each named step of a commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ekorn.common import Row, Types
from ekorn.datastream.connectors.jdbc import JdbcSink
from tests.connectors.jdbc.stores import Store
from tests.connectors.killed_slots import COMMIT_STEPS, RECORDS, run_with_kills

NUMBER = Types.ROW([Types.INT()])
STEPS = {"jdbc-ledger": "jdbc-ledger:*:1:kill", "jdbc-rows": "jdbc-rows:*:1:kill", **COMMIT_STEPS}


ROWS_EACH = 100  # rows of each record, so that each transaction has enough to be copied


@pytest.mark.heavy
def test_a_slot_that_is_killed_while_columns_are_committed_loses_no_row_and_writes_none_twice(
    postgresql: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgresql.run("CREATE TABLE log (id INT)")
    named = Types.ROW_NAMED(["id"], [Types.INT()])
    written = JdbcSink.exactly_once_sink("INSERT INTO log VALUES (?)", named, postgresql.options)

    def rows_of(number: int) -> Iterator[Row]:
        return (Row(id=number * ROWS_EACH + each) for each in range(ROWS_EACH))

    run_with_kills(
        STEPS["jdbc-rows"], tmp_path, monkeypatch, lambda s: s.flat_map(rows_of, named).to_columns().add_sink(written)
    )
    found = sorted(number for (number,) in postgresql.run("SELECT id FROM log"))
    assert found == list(range(RECORDS * ROWS_EACH))


@pytest.mark.heavy
@pytest.mark.parametrize("step", STEPS)
def test_a_slot_that_is_killed_at_a_step_of_a_commit_loses_no_row_and_writes_none_twice(
    step: str, postgresql: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgresql.run("CREATE TABLE log (id INT)")
    written = JdbcSink.exactly_once_sink("INSERT INTO log VALUES (?)", NUMBER, postgresql.options)
    run_with_kills(STEPS[step], tmp_path, monkeypatch, lambda s: s.map(Row, NUMBER).add_sink(written))
    assert sorted(number for (number,) in postgresql.run("SELECT id FROM log")) == list(range(RECORDS))
