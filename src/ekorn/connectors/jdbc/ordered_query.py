"""The rows of a query in an order that is the same in every run, so that a reader can continue at a position."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ekorn.connectors.jdbc.database import Column, Database, Failing, Statement
from ekorn.errors import RecordTypeError
from ekorn.functions.source_contract import Batch, Malformed
from ekorn.types.data_types import RowType
from ekorn.types.row import make_row
from ekorn.types.time import Instant

_NO_LIMIT = 2**63 - 1
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Condition(NamedTuple):
    """A comparison of the leading column with a value; `IS NULL` has none."""

    operator: str
    value: Any = None


class RowPosition(NamedTuple):
    """A position between two rows: behind `row_count` rows whose leading column has the value `at`.

    Checkpoints hold it as a plain tuple. Rows that are inserted or deleted at other values do not move it.
    """

    at: Any
    row_count: int


@dataclass(frozen=True)
class OrderedQuery:
    """A query, ordered by its leading column and then by all others: rows that compare equal are equal.

    Attributes:
        database: The database.
        query: The query of the program, without placeholders.
        columns: Its columns.
        leading: The position of the leading column; None orders by all columns from left to right.
        fetch_rows: The number of rows that are fetched at a time.
        row_type: The columns of a stream of columns; None for a stream of rows.
    """

    database: Database
    query: str
    columns: tuple[Column, ...]
    leading: int | None
    fetch_rows: int
    row_type: RowType | None = None

    @property
    def column(self) -> str:
        """Return the leading column as it is written in a statement."""
        assert self.leading is not None, "a query without a leading column has no conditions"
        return self.columns[self.leading].order_term

    def scalar(self, connection: Any, expression: str, conditions: Sequence[Condition] = ()) -> Any:
        """Return the value of an expression over all rows, such as `max(...)`."""
        statement, values = self._select(expression, conditions, "")
        with contextlib.closing(connection.cursor()) as cursor:
            cursor.execute(self.database.spelled(statement), values)
            return cursor.fetchone()[0]

    def rows(self, connection: Any, conditions: Sequence[Condition], skip: int) -> Any:
        """Return a cursor over the rows that fulfil all conditions, behind the first `skip` of them."""
        terms = [column.order_term for column in self.columns]
        if self.leading is not None:
            terms.insert(0, terms.pop(self.leading))
        tail = f" ORDER BY {', '.join(terms)} LIMIT {_NO_LIMIT} OFFSET {skip}"
        statement, values = self._select("*", conditions, tail)
        return self.database.stream(connection, self.database.spelled(statement), values, self.fetch_rows)

    def _select(self, what: str, conditions: Sequence[Condition], tail: str) -> tuple[Statement, list[Any]]:
        parts, values = [f"SELECT {what} FROM ({self.query}) AS q"], []
        for number, (operator, value) in enumerate(conditions):
            parts[-1] += f" {'AND' if number else 'WHERE'} {self.column} {operator}"
            if operator != "IS NULL":
                parts[-1] += " "
                parts.append("")
                values.append(value)
        parts[-1] += tail
        return Statement(tuple(parts)), values


class OrderedRows:
    """Reads the rows of a range in order, and knows its position. Connects when it is first read."""

    def __init__(self, query: OrderedQuery, conditions: Sequence[Condition], position: RowPosition | None) -> None:
        self._query = query
        self._names = [column.name for column in query.columns]
        self._failing = Failing(query.database)
        self._conditions = list(conditions)
        self.position = position or RowPosition(None, 0)
        self._connection: Any = None
        self._cursor: Any = None
        self.ended = False
        self.read_rows = 0  # by this reader

    def read(self, max_records: int) -> Batch:
        """Return the next rows, in the form of the stream."""
        before = self.read_rows
        found = self._fetch(max_records)
        self.read_rows += len(found)
        if self._query.row_type is not None:
            return self._columns(found, before) if found else Batch([])
        names = self._names
        return Batch([make_row(list(values), names) for values in found])  # hot

    def _columns(self, found: Sequence[Any], before: int) -> Batch:
        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.origin import Origin
        from ekorn.columns.row_columns import RowColumns

        assert self._query.row_type is not None, "a stream of columns"
        columns, malformed = RowColumns(self._query.row_type), []
        rows = [tuple(map(_as_instant, values)) for values in found]
        try:
            data, exact = columns.batch(rows), True
        except RecordTypeError:
            fitting, exact = [], False
            for row in rows:
                try:
                    columns.batch([row])
                    fitting.append(row)
                except RecordTypeError as error:
                    malformed.append(Malformed(row, error))
            data = columns.batch(fitting)
        origin = Origin("those that this attempt has read from the query", before, len(rows), exact)
        return Batch([ColumnBatch(data, origin=origin)] if data.num_rows else [], malformed=malformed)

    def _fetch(self, max_records: int) -> Sequence[Any]:
        if self.ended:
            return []
        with self._failing.doing("read rows", self._query.query):
            if self._cursor is None:
                self._begin()
            found = self._cursor.fetchmany(min(max_records, self._query.fetch_rows))
        if not found:
            self.close()
            self.ended = True
            return []
        self._advance(found)
        return found  # type: ignore[no-any-return]  # of the driver

    def _begin(self) -> None:
        conditions, position = list(self._conditions), self.position
        if position.at is not None:
            conditions.append(Condition(">=", position.at))
        self._connection = self._query.database.connect()
        self._cursor = self._query.rows(self._connection, conditions, position.row_count)

    def _advance(self, found: Sequence[Sequence[Any]]) -> None:
        leading = self._query.leading
        at = None if leading is None else found[-1][leading]
        if at is None:
            self.position = RowPosition(None, self.position.row_count + len(found))
            return
        count = 0
        for values in reversed(found):
            if values[leading] != at:
                break
            count += 1
        before = self.position.row_count if count == len(found) and self.position.at == at else 0
        self.position = RowPosition(at, before + count)

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(*self._query.database.errors()):  # the connection may be lost already
                connection.close()


def _as_instant(value: Any) -> Any:
    """Return a value as rows have it: a point in time of a driver has a zone."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        passed = value - _EPOCH
        return Instant(passed // datetime.timedelta(seconds=1), value.microsecond * 1000)
    return value
