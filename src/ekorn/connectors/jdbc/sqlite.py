"""SQLite, through the standard library. Every slot must reach the file under the same path."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ekorn.connectors.jdbc.database import LEDGER, LEDGER_COLUMNS, Column, Statement, Values, utc_time
from ekorn.connectors.jdbc.options import JdbcConnectionOptions, without_secrets
from ekorn.errors import ConfigurationError
from ekorn.types import basic_types as basic
from ekorn.types.composite_types import PrimitiveArrayTypeInfo
from ekorn.types.factory import Types
from ekorn.types.time import Instant
from ekorn.types.type_information import TypeInformation

PREFIX = "jdbc:sqlite:"
DRIVER_NAME = "org.sqlite.JDBC"
_LOCK_SECONDS = 30.0
_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


@dataclass(frozen=True)
class Sqlite:
    """A file of SQLite."""

    path: str

    @staticmethod
    def of(options: JdbcConnectionOptions) -> Sqlite:
        """Read the options of a connection."""
        path, _, parameters = options.url[len(PREFIX) :].partition("?")
        if not path or path == ":memory:":
            raise ConfigurationError(
                f"{without_secrets(options.url)!r} does not name a file, so every slot would have its own "
                "database; name a file that all slots can reach, such as 'jdbc:sqlite:/data/orders.db'"
            )
        if parameters:
            raise ConfigurationError(f"{PREFIX} URLs take no parameters after '?'")
        if options.user_name or options.password:
            raise ConfigurationError(f"{PREFIX}{path}: SQLite has no users; leave out the user name and the password")
        return Sqlite(path)

    @property
    def shown(self) -> str:
        return f"{PREFIX}{self.path}"

    def connect(self) -> sqlite3.Connection:
        # IMMEDIATE: a transaction waits for the lock at its start, where waiting cannot cause a deadlock.
        return sqlite3.connect(self.path, timeout=_LOCK_SECONDS, isolation_level="IMMEDIATE", check_same_thread=False)

    def errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error, OverflowError)

    def may_pass(self, error: Exception) -> bool:
        code = getattr(error, "sqlite_errorcode", None)
        return isinstance(error, sqlite3.OperationalError) and code is not None and (code & 0xFF) in _PASSING

    def spelled(self, statement: Statement) -> str:
        return statement.with_placeholder("?")

    def binding(self, type_info: TypeInformation) -> Callable[[Any], Any] | None:
        match type_info:
            case basic.BigDecimalTypeInfo():
                return str  # SQLite's numbers would round the value
            case basic.DateTypeInfo() | basic.TimeTypeInfo():
                return _iso
            case basic.TimestampTypeInfo():
                return _iso_with_space
            case basic.InstantTypeInfo():
                return _instant_text
            case basic.PickledBytesTypeInfo():
                raise ValueError("a field needs a type for its column; declare one such as Types.STRING()")
            case basic.BasicTypeInfo():
                return None
            case PrimitiveArrayTypeInfo() if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE()):
                return None
            case _:
                raise ValueError(f"SQLite has no column type for {type_info}; map the field to text or bytes first")

    def copy_rows(
        self,
        cursor: sqlite3.Cursor,
        statement: Statement,
        types: Sequence[TypeInformation],
        chunks: Iterable[Sequence[Values]],
    ) -> bool:
        return False

    def create_ledger(self, cursor: sqlite3.Cursor) -> None:
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {LEDGER} ({LEDGER_COLUMNS})")

    def columns(self, connection: sqlite3.Connection, query: str) -> list[Column]:
        # Cursors do not report declared types, but a view that only this connection sees does.
        connection.execute(f"CREATE TEMP VIEW ekorn_columns AS SELECT * FROM ({query}) AS q")
        try:
            found = connection.execute("PRAGMA table_info(ekorn_columns)").fetchall()
        finally:
            connection.execute("DROP VIEW ekorn_columns")
            connection.commit()
        return [_column(name, declared) for _, name, declared, *_ in found]

    def stream(
        self, connection: sqlite3.Connection, sql: str, values: Sequence[Any], fetch_rows: int
    ) -> sqlite3.Cursor:
        cursor = connection.cursor()
        cursor.arraysize = fetch_rows
        cursor.execute(sql, tuple(values))
        return cursor

    def transaction_mark(self, connection: sqlite3.Connection) -> int:
        return 0

    def is_settled(self, connection: sqlite3.Connection, mark: int) -> bool:
        return True  # only one transaction writes at a time, so transactions commit in their order


def _column(name: str, declared: str) -> Column:
    # The affinity rules of SQLite, as far as the declared type fixes the type of the values.
    kind = declared.upper()
    type_info = Types.PICKLED_BYTE_ARRAY()
    if "INT" in kind:
        type_info = Types.LONG()
    elif "CHAR" in kind or "CLOB" in kind or "TEXT" in kind:
        type_info = Types.STRING()
    elif "REAL" in kind or "FLOA" in kind or "DOUB" in kind:
        type_info = Types.DOUBLE()
    elif "BLOB" in kind:
        type_info = Types.PRIMITIVE_ARRAY(Types.BYTE())
    quoted = '"' + name.replace('"', '""') + '"'
    return Column(name, type_info, quoted, order_is_native=True, is_number="INT" in kind)


def _iso(value: Any) -> str:
    return str(value.isoformat())


def _iso_with_space(value: Any) -> str:
    return str(value.isoformat(sep=" "))


def _instant_text(value: Instant) -> str:
    return utc_time(value).isoformat(sep=" ")
