"""PostgreSQL, through psycopg 3 (`pip install "ekorn[jdbc]"`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from ekorn.connectors.jdbc.database import LEDGER, LEDGER_COLUMNS, Column, Statement, Values, utc_time
from ekorn.connectors.jdbc.options import JdbcConnectionOptions, without_secrets
from ekorn.connectors.jdbc.postgresql_copy import copy_rows, copy_statement
from ekorn.errors import ConfigurationError
from ekorn.extras import load
from ekorn.types import basic_types as basic
from ekorn.types.composite_types import ListTypeInfo, PrimitiveArrayTypeInfo
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

PREFIX = "jdbc:postgresql:"
DRIVER_NAME = "org.postgresql.Driver"
_DEFAULT_PORT = "5432"

# Parameters of the Java driver's URLs, with libpq's names for them.
_PARAMETERS = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslrootcert": "sslrootcert",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "options": "options",
    "targetServerType": "target_session_attrs",
}
_SERVER_TYPES = {"any": "any", "primary": "primary", "secondary": "standby", "preferSecondary": "prefer-standby"}
_LEDGER_LOCK = 0x65_6B6F_726E  # any number; subtasks that create the ledger take this lock one after the other

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
# Types by their object id in pg_type. Values of other types arrive without a declared type. Times are among them,
# because SQL_TIME and SQL_TIMESTAMP would drop the microseconds and the time zone.
_TYPES: dict[int, TypeInformation] = {
    16: Types.BOOLEAN(),
    17: _BYTES,
    18: Types.STRING(),
    19: Types.STRING(),
    20: Types.LONG(),
    21: Types.SHORT(),
    23: Types.INT(),
    25: Types.STRING(),
    700: Types.FLOAT(),
    701: Types.DOUBLE(),
    1042: Types.STRING(),
    1043: Types.STRING(),
    1082: Types.SQL_DATE(),
    1700: Types.BIG_DEC(),
}
_NUMBERS = (20, 21, 23)
_ALSO_ORDERED = (1083, 1114, 1184, 1186, 1266, 2950)  # times, intervals and UUIDs


@dataclass(frozen=True, repr=False)
class PostgreSql:
    """A database of a PostgreSQL server."""

    shown: str
    parameters: Mapping[str, str] = field(default_factory=dict)  # under libpq's names; includes the password

    @staticmethod
    def of(options: JdbcConnectionOptions) -> PostgreSql:
        """Read the options of a connection."""
        shown = without_secrets(options.url)
        address, _, query = options.url[len(PREFIX) :].partition("?")
        parameters = _address(address, shown)
        if options.user_name is not None:
            parameters["user"] = options.user_name
        if options.password is not None:
            parameters["password"] = options.password
        for name, value in parse_qsl(query, keep_blank_values=True):
            parameters |= _parameter(name, value, shown)
        _check_installed()
        return PostgreSql(shown, parameters)

    def __repr__(self) -> str:
        return f"PostgreSql({self.shown!r})"

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect("", **self.parameters)  # type: ignore[arg-type]  # the names are libpq's, as str

    def errors(self) -> tuple[type[Exception], ...]:
        import psycopg

        return (psycopg.Error,)

    def may_pass(self, error: Exception) -> bool:
        import psycopg

        # These are lost connections, a server that starts or stops, deadlocks, serialization failures, a full disk.
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def spelled(self, statement: Statement) -> str:
        return "%s".join(part.replace("%", "%%") for part in statement.parts)

    def binding(self, type_info: TypeInformation) -> Callable[[Any], Any] | None:
        match type_info:
            case basic.InstantTypeInfo():
                return utc_time
            case basic.PickledBytesTypeInfo():
                raise ValueError("a field needs a type for its column; declare one such as Types.STRING()")
            case basic.BasicTypeInfo() | PrimitiveArrayTypeInfo():
                return None
            case ListTypeInfo():
                return None
            case _:
                raise ValueError(f"PostgreSQL has no column type for {type_info}; map the field to text or bytes first")

    def copy_rows(
        self,
        cursor: Any,
        statement: Statement,
        types: Sequence[TypeInformation],
        chunks: Iterable[Sequence[Values]],
    ) -> bool:
        copy = copy_statement(cursor, statement, types)
        if copy is not None:
            copy_rows(cursor, copy, chunks)
        return copy is not None

    def create_ledger(self, cursor: Any) -> None:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LEDGER_LOCK,))
        cursor.execute("SELECT to_regclass(%s)", (LEDGER,))
        if cursor.fetchone()[0] is None:  # an administrator can create the table for a user who may not
            cursor.execute(f"CREATE TABLE {LEDGER} ({LEDGER_COLUMNS})")

    def columns(self, connection: Any, query: str) -> list[Column]:
        cursor = connection.execute(f"SELECT * FROM ({query}) AS q LIMIT 0")
        found = [_column(each.name, each.type_code) for each in cursor.description]
        connection.rollback()
        return found

    def stream(self, connection: Any, sql: str, values: Sequence[Any], fetch_rows: int) -> Any:
        cursor = connection.cursor(name="ekorn_source")
        cursor.itersize = fetch_rows
        cursor.execute(sql, tuple(values))
        return cursor

    def transaction_mark(self, connection: Any) -> int:
        # This transaction takes a number for itself: the xmax of a snapshot may be below the numbers of open
        # transactions.
        mark = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()[0]
        connection.rollback()
        return int(mark)

    def is_settled(self, connection: Any, mark: int) -> bool:
        oldest = connection.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").fetchone()[0]
        connection.rollback()
        return int(oldest) >= mark


def _address(address: str, shown: str) -> dict[str, str]:
    """Return the hosts, ports and database of `//host:port,host:port/database` or `database`."""
    if not address.startswith("//"):
        return {"host": "localhost", "port": _DEFAULT_PORT, "dbname": unquote(address.lstrip("/"))} if address else {}
    hosts, _, database = address[2:].partition("/")
    if "@" in hosts:
        raise ConfigurationError(
            f"{shown!r} has a user before the host; pass it to with_user_name() and the password to with_password()"
        )
    pairs = [_host_and_port(each) for each in hosts.split(",")]
    found = {"host": ",".join(host for host, _ in pairs), "port": ",".join(port for _, port in pairs)}
    return found | ({"dbname": unquote(database)} if database else {})


def _host_and_port(text: str) -> tuple[str, str]:
    if text.startswith("["):  # an IPv6 address
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":") or _DEFAULT_PORT
    host, _, port = text.partition(":")
    return host or "localhost", port or _DEFAULT_PORT


def _parameter(name: str, value: str, shown: str) -> dict[str, str]:
    if name == "ssl":
        return {"sslmode": "verify-full" if value.lower() in ("", "true") else "disable"}
    if name == "currentSchema":
        return {"options": f"-csearch_path={value.replace(' ', '')}"}
    if name == "targetServerType":
        value = _SERVER_TYPES.get(value, value)
    if name not in _PARAMETERS:
        raise ConfigurationError(
            f"{shown!r} has an unknown parameter {name!r} after '?'; the known ones "
            f"are {', '.join(sorted([*_PARAMETERS, 'currentSchema', 'ssl']))}"
        )
    return {_PARAMETERS[name]: value}


def _check_installed() -> None:
    load("jdbc", f"a URL of {PREFIX}")  # imported, because psycopg without libpq is installed and of no use


def _column(name: str, type_code: int) -> Column:
    quoted = '"' + name.replace('"', '""') + '"'
    known = _TYPES.get(type_code)
    # Some types, such as json, have no order; their text has one.
    native = known is not None or type_code in _ALSO_ORDERED
    return Column(
        name,
        known or Types.PICKLED_BYTE_ARRAY(),
        quoted if native else f"{quoted}::text",
        order_is_native=native,
        is_number=type_code in _NUMBERS,
    )
