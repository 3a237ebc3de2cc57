"""Change capture: a stream of changes of a table becomes a copy of the table, with history per key checked on the way.

    python examples/change_capture.py

A change is an insert, an update or a delete, with a version that grows per row. The changes arrive in disorder and
some twice, as they do from a log that is read again. The function keeps the version of each row in state and drops
what is old. The copy is a table of SQLite, written by upserts: a change that is written twice does no harm.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from pathlib import Path

from ekorn.common import Row, Types
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from ekorn.datastream.state import ValueStateDescriptor

ROWS, CHANGES = 12, 120
STORED = Types.ROW_NAMED(["id", "version", "price", "deleted"], [Types.LONG()] * 4)
UPSERT = (
    "INSERT INTO prices VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
    "version = excluded.version, price = excluded.price, deleted = excluded.deleted"
)


def change(number: int) -> tuple[str, int, int, int]:
    """Return operation, id, version and price of a change."""
    row, version = number % ROWS, number // ROWS
    operation = "d" if (number * 7) % 11 == 0 else ("u" if version else "i")
    return operation, row, version, 100 + number * 37 % 400


def arriving() -> list[tuple[str, int, int, int]]:
    """Return the changes as they arrive: neighbours of three rounds are mixed, and every tenth comes twice."""
    changes = [change(number) for number in range(CHANGES)]
    rounds = [changes[at : at + 3 * ROWS] for at in range(0, CHANGES, 3 * ROWS)]
    mixed = [each for of_three in rounds for each in sorted(of_three, key=lambda each: each[3] * 7 % 101)]
    return [each for number, each in enumerate(mixed) for _ in range(2 if number % 10 == 0 else 1)]


class Newest(KeyedProcessFunction):
    """Passes a change on if it is newer than every change of its row before it."""

    def open(self, runtime_context):
        self.version = runtime_context.get_state(ValueStateDescriptor("version", Types.LONG(), -1))
        self.dropped = runtime_context.get_metrics_group().counter("dropped")

    def process_element(self, value, ctx):
        operation, row, version, price = value
        if version <= self.version.value():
            self.dropped.inc()
            return
        self.version.update(version)
        yield Row(row, version, price, int(operation == "d"))


def copy_table(file: Path) -> None:
    """Run the job: changes -> the newest of each row -> the table `prices` in a file of SQLite."""
    with sqlite3.connect(file) as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS prices (id INTEGER PRIMARY KEY, version INT, price INT, deleted INT)"
        )
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(1000)
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{file}").build()
    (
        env.from_collection(arriving())
        .key_by(lambda change: change[1])
        .process(Newest(), output_type=STORED)
        .uid("newest")
        .add_sink(JdbcSink.sink(UPSERT, STORED, options))
    )
    env.execute("change capture")


def table(file: Path) -> list[tuple[int, int]]:
    """Return id and price of every row of the copy."""
    with sqlite3.connect(file) as database:
        return database.execute("SELECT id, price FROM prices WHERE NOT deleted ORDER BY id").fetchall()


def expected() -> list[tuple[int, int]]:
    """Return the rows of the table after all changes, in plain Python."""
    last = {row: (operation, price) for operation, row, _, price in map(change, range(CHANGES))}
    return sorted((row, price) for row, (operation, price) in last.items() if operation != "d")


def main() -> int:
    """Draw the copy as bars, and compare it with the table."""
    with tempfile.TemporaryDirectory() as folder:
        copy_table(Path(folder, "copy.db"))
        found = table(Path(folder, "copy.db"))
    for row, price in found:
        print(f"row {row:>2} {price:>5}  {'#' * (price // 10)}")
    print("the copy equals the table" if found == expected() else "THE COPY DIFFERS")
    return 0 if found == expected() else 1


if __name__ == "__main__":
    sys.exit(main())
