"""The databases that tests of JDBC run on, behind one interface: SQLite in a file, a PostgreSQL server; and options."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions
from ekorn.functions.sink_contract import SinkContext
from tests.servers.postgres import PASSWORD, USER, PostgresServer


@dataclass(frozen=True)
class Store:
    """A database of a test's own."""

    options: JdbcConnectionOptions
    file: Path | None = None
    server: PostgresServer | None = None
    name: str = ""

    def run(self, sql: str, *values: Any) -> list[Any]:
        """Run a statement and commit it; return its rows."""
        if self.server is not None:
            with self.server.connect(self.name) as connection:
                cursor = connection.execute(sql.replace("?", "%s"), values)
                return cursor.fetchall() if cursor.description else []
        assert self.file is not None
        with sqlite3.connect(self.file) as connection:
            return connection.execute(sql, values).fetchall()

    @property
    def is_postgresql(self) -> bool:
        return self.server is not None


def options_of(url: str, user: str | None = None, password: str | None = None) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url)
    if user is not None:
        builder.with_user_name(user)
    if password is not None:
        builder.with_password(password)
    return builder.build()


def sqlite_store(folder: Path) -> Store:
    file = folder / "store.db"
    return Store(options_of(f"jdbc:sqlite:{file}"), file=file)


def postgresql_store(server: PostgresServer, name: str) -> Store:
    return Store(options_of(server.url(name), USER, PASSWORD), server=server, name=name)


class Context(SinkContext):
    """What a sink is given with a record."""

    def __init__(self) -> None:
        self.now_ms = 0

    def timestamp(self) -> int | None:
        return None

    def current_watermark(self) -> int:
        return 0

    def current_processing_time(self) -> int:
        return self.now_ms


def batches(size: int = 5000, interval_ms: int = 0, retries: int = 3) -> JdbcExecutionOptions:
    builder = JdbcExecutionOptions.builder().with_batch_size(size).with_batch_interval_ms(interval_ms)
    return builder.with_max_retries(retries).build()
