"""Rows per second that `JdbcSink` writes from batches of columns: as rows, by the statement, and by COPY.

    python -m benchmarks.database_forms

The rows have a whole number, a text and a float. Everything runs in one process, except for a PostgreSQL server on this
machine, which does not sync its disk. The forms take turns; the median of the seconds by the clock is shown.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.servers import postgres

from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.row_columns import RowColumns
from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from ekorn.table import DataTypes
from ekorn.types.data_type_info import row_type_info

ROW = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.BIGINT()),
        DataTypes.FIELD("text", DataTypes.STRING()),
        DataTypes.FIELD("price", DataTypes.DOUBLE()),
    ]
)
TABLE = "CREATE TABLE sold (id BIGINT, text VARCHAR(80), price DOUBLE PRECISION)"
INSERT = "INSERT INTO sold VALUES (?, ?, ?)"
FORMS = {"rows": INSERT, "statement": f"{INSERT} -- for every row", "copy": INSERT}  # a comment keeps it from COPY
BATCH_ROWS = 50_000


class Clock:
    """What a sink asks for with each record."""

    def current_processing_time(self) -> int:
        return 0


def batch_of(first: int) -> ColumnBatch:
    numbers = range(first, first + BATCH_ROWS)
    columns = {"id": list(numbers), "text": [f"row {n}" for n in numbers], "price": [n / 4 for n in numbers]}
    return ColumnBatch(pa.record_batch(columns, schema=RowColumns(ROW).schema))


def write(options: JdbcConnectionOptions, form: str, guarantee: str, batches: list[ColumnBatch]) -> float:
    """Return the seconds in which a sink has written some batches."""
    sink: Any = getattr(JdbcSink, guarantee)(FORMS[form], row_type_info(ROW), options)
    clock, columns = Clock(), RowColumns(ROW)
    if form != "rows":
        sink = sink.with_columns(ROW)
    begun = time.perf_counter()
    given = (sink.begin_transaction(),) if guarantee == "exactly_once_sink" else ()
    for batch in batches:
        if form != "rows":
            sink.invoke_batch(*given, batch, clock)
            continue
        for row in columns.rows(batch.data):
            sink.invoke(*given, row, clock)
    if given:
        sink.pre_commit(*given)
        sink.commit(*given)
    else:
        sink.finish()
    seconds = time.perf_counter() - begun
    sink.close()
    return seconds


def compare(
    name: str, options: JdbcConnectionOptions, forms: list[str], run: Callable[[str], Any], *, turns: int, count: int
) -> None:
    """Print the rows per second of each form."""
    batches = [batch_of(number * BATCH_ROWS) for number in range(count)]
    for guarantee in ("sink", "exactly_once_sink"):
        seconds: dict[str, list[float]] = {form: [] for form in forms}
        for _ in range(turns):
            for form in forms:
                run("DELETE FROM sold")
                seconds[form].append(write(options, form, guarantee, batches))
        for form, found in seconds.items():
            rate = count * BATCH_ROWS / statistics.median(found)
            print(f"{name:12} {guarantee:18} {form:10} {rate:10,.0f} rows per second", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batches", type=int, default=4, help=f"of {BATCH_ROWS:,} rows")
    given = parser.parse_args()
    size = {"turns": given.turns, "count": given.batches}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sold.db")
        with sqlite3.connect(file, isolation_level=None) as database:
            database.execute(TABLE)
            options = JdbcConnectionOptions(f"jdbc:sqlite:{file}")
            compare("SQLite", options, ["rows", "statement"], database.execute, **size)
    with postgres.running_server() as server, server.database() as name, server.connect(name) as connection:
        connection.execute(TABLE)
        connection.commit()

        def run(sql: str) -> None:
            connection.execute(sql)
            connection.commit()

        options = JdbcConnectionOptions(server.url(name), user_name=postgres.USER, password=postgres.PASSWORD)
        compare("PostgreSQL", options, list(FORMS), run, **size)


if __name__ == "__main__":
    main()
