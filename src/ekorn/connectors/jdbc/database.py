"""The interface of a database driver for sinks and sources: statements with `?` placeholders, and their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

from ekorn.errors import DatabaseError
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.row import Row
from ekorn.types.time import Instant
from ekorn.types.type_information import TypeInformation

LEDGER = "ekorn_ledger"
LEDGER_COLUMNS = (
    "sink VARCHAR(200) NOT NULL, transaction_id VARCHAR(64) NOT NULL, subtask INTEGER NOT NULL, "
    "row_count BIGINT NOT NULL, committed_ms BIGINT NOT NULL, PRIMARY KEY (sink, transaction_id)"
)


Values = tuple[Any, ...]

Binding = Callable[[Any], Any]
"""Turns a value of a record, which is not None, into a value of the driver."""

# The pattern skips text, quoted names, comments and dollar-quoted text; `??` is the operator `?` of PostgreSQL.
_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | --[^\n]*
    | /\*.*?\*/
    | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$).*?(?P=dollar)
    | (?P<operator>\?\?)
    | (?P<placeholder>\?)
    """,
    re.VERBOSE | re.DOTALL,
)


class Statement(NamedTuple):
    """A statement as the text between its placeholders, which stand outside of text, names and comments."""

    parts: tuple[str, ...]

    @property
    def placeholder_count(self) -> int:
        """Return the number of values that the statement takes."""
        return len(self.parts) - 1

    def with_placeholder(self, placeholder: str) -> str:
        """Return the statement with another spelling of its placeholders.

        >>> parse("INSERT INTO t VALUES (?, 'why?')").with_placeholder(":v")
        "INSERT INTO t VALUES (:v, 'why?')"
        """
        return placeholder.join(self.parts)


def parse(sql: str) -> Statement:
    """Find the placeholders of a statement.

    >>> parse("SELECT a ?? 'key' FROM t WHERE b = ?").parts
    ("SELECT a ? 'key' FROM t WHERE b = ", '')
    """
    parts, text, end = [], "", 0
    for token in _TOKEN.finditer(sql):
        text += sql[end : token.start()]
        end = token.end()
        if token.lastgroup == "placeholder":
            parts.append(text)
            text = ""
        elif token.lastgroup == "operator":
            text += "?"
        else:
            text += token.group()
    return Statement((*parts, text + sql[end:]))


class Column(NamedTuple):
    """A column of a query."""

    name: str
    type_info: TypeInformation
    order_term: str  # the expression that orders rows by this column
    order_is_native: bool  # the order term is the column itself, so that `<` and `ORDER BY` agree
    is_number: bool  # whether the column holds whole numbers, whose range can be divided


class Database(Protocol):
    """A database of one URL and one user. Plain data: slots get a copy of it."""

    @property
    def shown(self) -> str:
        """Return the URL without user and password."""
        ...

    def connect(self) -> Any:
        """Open a DB-API connection that begins transactions by itself. Raises the driver's errors."""
        ...

    def errors(self) -> tuple[type[Exception], ...]:
        """Return the base classes of the driver's errors."""
        ...

    def may_pass(self, error: Exception) -> bool:
        """Return whether the same statement may succeed later: the database is away, busy or full, or rows are locked.

        False for a wrong statement and for a row that a constraint refuses.
        """
        ...

    def spelled(self, statement: Statement) -> str:
        """Return a statement with the driver's placeholders."""
        ...

    def binding(self, type_info: TypeInformation) -> Binding | None:
        """Return the function from a value of a type to a value of the driver; None: they are the same.

        Raises:
            ValueError: The driver has no value for the type; the message names what to do.
        """
        ...

    def copy_rows(
        self,
        cursor: Any,
        statement: Statement,
        types: Sequence[TypeInformation],
        chunks: Iterable[Sequence[Values]],
    ) -> bool:
        """Write rows without running the statement for each, if the database can and stores the same.

        Args:
            cursor: The cursor of the transaction.
            statement: The statement for one row.
            types: The types of its values.
            chunks: The rows.

        Returns:
            Whether the rows were written. If not, nothing was done, and no chunk was taken.
        """
        ...

    def create_ledger(self, cursor: Any) -> None:
        """Create the table of committed transactions if it does not exist."""
        ...

    def columns(self, connection: Any, query: str) -> list[Column]:
        """Return the columns of a query, without running it."""
        ...

    def stream(self, connection: Any, sql: str, values: Sequence[Any], fetch_rows: int) -> Any:
        """Run a query and return a cursor that holds about `fetch_rows` rows in memory at a time."""
        ...

    def transaction_mark(self, connection: Any) -> int:
        """Return a number above the numbers of all transactions that have written so far."""
        ...

    def is_settled(self, connection: Any, mark: int) -> bool:
        """Return whether all transactions below a mark have ended."""
        ...


@dataclass(frozen=True)
class Failing:
    """Translates the errors of a driver into `DatabaseError`."""

    database: Database

    @contextmanager
    def doing(self, activity: str, statement: str | None = None) -> Iterator[None]:
        """Run a block; a driver's error in it becomes a `DatabaseError` that names the work and the statement."""
        try:
            yield
        except self.database.errors() as error:
            # The error of the driver is not chained: its traceback contains calls whose arguments hold the password.
            raise DatabaseError(self.database.shown, activity, statement, reason_of(error)) from None


def utc_time(instant: Instant) -> datetime:
    """Return a point in time with its time zone, to the microsecond."""
    return datetime.fromtimestamp(instant.seconds, UTC) + timedelta(microseconds=instant.nanos // 1000)


def reason_of(error: Exception) -> str:
    """Return the words of a driver's error in one line, with its type."""
    return f"{' '.join(str(error).split())} ({type(error).__name__})"


class RowValues:
    """Checks records against a type, and returns the values that a statement takes."""

    def __init__(self, call: str, statement: Statement, type_info: TypeInformation, database: Database) -> None:
        """Check that the statement takes as many values as the type has fields, and that each type can be bound."""
        if not isinstance(type_info, RowTypeInfo):
            raise TypeError(f"{call} takes the type of its rows, such as Types.ROW([Types.INT()]), got {type_info!r}")
        names, types = type_info.get_field_names(), type_info.get_field_types()
        if statement.placeholder_count != len(types):
            raise ValueError(
                f"{call}: the statement has {statement.placeholder_count} placeholders '?', "
                f"but the type has {len(types)} fields: {', '.join(names)}"
            )
        self.type_info = type_info
        self.bindings: list[tuple[int, Binding]] = []  # the fields whose values are converted
        for position, (name, each) in enumerate(zip(names, types, strict=True)):
            try:
                binding = database.binding(each)
            except ValueError as error:
                raise ValueError(f"{call}: field {name!r}: {error}") from None
            if binding is not None:
                self.bindings.append((position, binding))

    def of(self, record: Any) -> Values:
        """Return the values of a record, in the order of the type's fields.

        Raises:
            RecordTypeError: The record does not fit the type.
        """
        row = Row(*record) if type(record) is tuple else record
        values = list(self.type_info.conform([row])[0])
        for position, binding in self.bindings:
            if values[position] is not None:
                values[position] = binding(values[position])
        return tuple(values)
