"""Rows that are given to `JdbcSink` as columns, and what they have become in the database."""

from __future__ import annotations

from typing import Any

from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.row_columns import RowColumns
from ekorn.common import Row, Types
from ekorn.connectors.jdbc.exactly_once import JdbcExactlyOnceSink
from ekorn.table import DataTypes
from tests.connectors.jdbc.stores import Context, Store

PAIR = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
COLUMNS = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("name", DataTypes.STRING())])
INSERT = "INSERT INTO names (id, name) VALUES (?, ?)"
MANY = 300  # rows, more than are written one by one


def batch_of(rows: list[Row], row_type: Any = COLUMNS) -> ColumnBatch:
    return ColumnBatch(RowColumns(row_type).batch(rows))


def pairs(count: int, first: int = 0) -> list[Row]:
    return [Row(id=n, name=f"n{n}") for n in range(first, first + count)]


def names(store: Store) -> list[Any]:
    return store.run("SELECT id, name FROM names ORDER BY id")


def commands(store: Store, table: str = "names") -> Any:
    """Return how many statements have written the rows of a table of PostgreSQL: a COPY writes many rows."""
    [(count,)] = store.run(f"SELECT count(DISTINCT (xmin::text, cmin::text)) FROM {table}")
    return count


def as_columns(sink: Any, row_type: Any = COLUMNS) -> Any:
    found = sink.with_columns(row_type)
    assert found is not None
    return found


def fill(sink: Any, rows: list[Row], row_type: Any = None) -> None:
    """Give rows to a sink as one batch of columns, or one by one if there is no row type, and let it write them."""
    sink = sink if row_type is None else as_columns(sink, row_type)
    exactly_once = isinstance(sink, JdbcExactlyOnceSink)
    begun = [sink.begin_transaction()] if exactly_once else []
    if row_type is None:
        for row in rows:
            sink.invoke(*begun, row, Context())
    else:
        sink.invoke_batch(*begun, batch_of(rows, row_type), Context())
    try:
        if exactly_once:
            sink.pre_commit(*begun)
            sink.commit(*begun)
        else:
            sink.finish()
    finally:
        sink.close()
