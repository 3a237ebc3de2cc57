"""The databases that tests of JDBC run on, behind one interface: SQLite in a file, and a PostgreSQL server."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions
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
