"""`JdbcSource`: reads the rows of a query, once or with the rows that are inserted later."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from ekorn.clock import Clock, SystemClock
from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.connectors.jdbc.database import Column, Database, Failing, parse
from ekorn.connectors.jdbc.databases import database_of
from ekorn.connectors.jdbc.options import JdbcConnectionOptions
from ekorn.connectors.jdbc.ordered_query import Condition, OrderedQuery, OrderedRows, RowPosition
from ekorn.connectors.number_seq import contiguous_ranges
from ekorn.errors import ConfigurationError
from ekorn.extras import need
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.types.data_type_info import checked_row_type, data_type_of
from ekorn.types.data_types import RowField, RowType
from ekorn.types.factory import Types
from ekorn.types.time import Duration, millis_of
from ekorn.types.type_information import TypeInformation

__all__ = ["JdbcSource", "JdbcSourceBuilder"]

_DEFAULT_FETCH_ROWS = 5000
_DEFAULT_INTERVAL = Duration.of_seconds(1)


class _Growing(NamedTuple):
    column: str
    start_after: Any
    interval_ms: int


class JdbcSource(Source):
    """Reads the rows of a query as `Row`s, whose names and types are those of the columns.

    JdbcSource.builder().set_db_url("jdbc:sqlite:/data/orders.db").set_sql("SELECT * FROM orders").build()
    """

    def __init__(
        self,
        query: OrderedQuery,
        *,
        splits: Sequence[Split],
        growing: _Growing | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create the source from the settings of a builder."""
        self._query = query
        self._splits = list(splits)
        self._growing = growing
        self._clock = clock or SystemClock()

    @staticmethod
    def builder() -> JdbcSourceBuilder:
        """Begin to build a source."""
        return JdbcSourceBuilder()

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED unless the source has a growing column."""
        return Boundedness.BOUNDED if self._growing is None else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation:
        """Return rows, or columns, with the names and types of the columns of the query."""
        if self._query.row_type is not None:
            from ekorn.columns.row_columns import RowColumns

            return ColumnsTypeInfo(RowColumns(self._query.row_type).schema)
        columns = self._query.columns
        return Types.ROW_NAMED([each.name for each in columns], [each.type_info for each in columns])

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return the ranges of the partition column; without one, a single split."""
        return self._splits

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a split at its first row, or at the position of an earlier reader."""
        if self._growing is None:
            return RangeReader(self._query, split, position)
        return GrowingReader(
            self._query,
            start_after=self._growing.start_after,
            position=position,
            interval_ms=self._growing.interval_ms,
            clock=self._clock,
        )

    def __repr__(self) -> str:
        return f"JdbcSource({self._query.query!r}, {self._query.database.shown!r})"


class JdbcSourceBuilder:
    """Builds a `JdbcSource`. The names are those of Flink's builder in Java, as far as it has them."""

    def __init__(self) -> None:
        """Begin without a query."""
        self._connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        self._sql: str | None = None
        self._fetch_rows = _DEFAULT_FETCH_ROWS
        self._partitions: tuple[str, int] | None = None
        self._growing: _Growing | None = None
        self._clock: Clock | None = None
        self._as_columns = False
        self._row_type: RowType | None = None

    def set_sql(self, sql: str) -> JdbcSourceBuilder:
        """Set the query. It has no placeholders; `??` is PostgreSQL's operator `?`."""
        self._sql = sql
        return self

    def set_db_url(self, db_url: str) -> JdbcSourceBuilder:
        """Set the URL: `jdbc:postgresql://host:port/database` or `jdbc:sqlite:/path/of/the/file`."""
        self._connection.with_url(db_url)
        return self

    def set_driver_name(self, driver_name: str) -> JdbcSourceBuilder:
        """Set the Java driver. The URL chooses the Python driver; a name of another database is refused."""
        self._connection.with_driver_name(driver_name)
        return self

    def set_username(self, username: str) -> JdbcSourceBuilder:
        """Set the user."""
        self._connection.with_user_name(username)
        return self

    def set_password(self, password: str) -> JdbcSourceBuilder:
        """Set the password."""
        self._connection.with_password(password)
        return self

    def set_result_set_fetch_size(self, result_set_fetch_size: int) -> JdbcSourceBuilder:
        """Set the number of rows that a reader holds in memory; 5000 by default."""
        self._fetch_rows = _positive("set_result_set_fetch_size", result_set_fetch_size)
        return self

    def set_partition_column(self, column: str, partition_count: int) -> JdbcSourceBuilder:
        """Read ranges of a column of whole numbers at the same time.

        `build` asks for the lowest and the highest value, and divides the numbers between them evenly. Rows outside of
        these bounds and rows without a value are read too. An index on the column makes it fast.
        """
        self._partitions = (column, _positive("set_partition_column", partition_count))
        return self

    def set_growing_column(
        self, column: str, start_after: Any = None, poll_interval: Duration | timedelta | int = _DEFAULT_INTERVAL
    ) -> JdbcSourceBuilder:
        """Read the present rows, then look for rows with a higher value at an interval, without end.

        Args:
            column: A column that grows with every inserted row and is different in each, such as a serial number.
                Changes of rows that were read, and rows that are inserted below the highest value, are not seen.
            start_after: Leave out the rows up to this value.
            poll_interval: The interval; a number is in milliseconds.
        """
        interval_ms = millis_of(poll_interval)
        if interval_ms <= 0:
            raise ValueError(f"set_growing_column() takes an interval greater than 0, got {poll_interval!r}")
        self._growing = _Growing(column, start_after, interval_ms)
        return self

    def as_columns(self, row_type: RowType | None = None) -> JdbcSourceBuilder:
        """Give a stream of columns instead of rows.

        Args:
            row_type: The columns of the query with their types. It is needed where the type of a column does not say
                all, such as a decimal number of any size, and for times.
        """
        need("columns", "JdbcSourceBuilder.as_columns()")
        self._row_type = None if row_type is None else checked_row_type(row_type, "as_columns()")
        self._as_columns = True
        return self

    def set_clock(self, clock: Clock) -> JdbcSourceBuilder:
        """Set the clock that measures the interval; for tests."""
        self._clock = clock
        return self

    def build(self) -> JdbcSource:
        """Connect to the database, ask for the columns, and return the source."""
        if self._sql is None:
            raise ValueError("JdbcSourceBuilder needs a query: call set_sql()")
        if self._partitions is not None and self._growing is not None:
            raise ValueError("a source can have a partition column or a growing column, not both")
        statement = parse(self._sql.strip().rstrip(";"))
        if statement.placeholder_count:
            raise ValueError(f"set_sql() takes a query without placeholders '?', got {self._sql!r}")
        database = database_of(self._connection.build())
        doing = Failing(database).doing("ask for the columns", self._sql)
        with doing, contextlib.closing(database.connect()) as connection:
            columns = tuple(database.columns(connection, statement.parts[0]))
            if self._as_columns:
                self._row_type = _columns_of(columns, self._row_type)
            return self._build(database, connection, statement.parts[0], columns)

    def _build(self, database: Database, connection: Any, query: str, columns: tuple[Column, ...]) -> JdbcSource:
        if self._growing is not None:
            leading = _position("set_growing_column", columns, self._growing.column)
            ordered = OrderedQuery(database, query, columns, leading, self._fetch_rows, self._row_type)
            return JdbcSource(ordered, splits=[Split("all")], growing=self._growing, clock=self._clock)
        if self._partitions is None:
            return JdbcSource(
                OrderedQuery(database, query, columns, None, self._fetch_rows, self._row_type), splits=[Split("all")]
            )
        name, count = self._partitions
        leading = _position("set_partition_column", columns, name)
        if not columns[leading].is_number:
            raise ValueError(f"set_partition_column() takes a column of whole numbers, but {name!r} has another type")
        ordered = OrderedQuery(database, query, columns, leading, self._fetch_rows, self._row_type)
        lowest = ordered.scalar(connection, f"min({ordered.column})")
        highest = ordered.scalar(connection, f"max({ordered.column})")
        ranges = ranges_of(lowest, highest, count) if lowest is not None else [(None, None)]
        return JdbcSource(ordered, splits=range_splits(ranges))


def _columns_of(columns: Sequence[Column], given: RowType | None) -> RowType:
    """Return the columns of the stream, checked against those of the query."""
    from ekorn.columns.arrow_columns import arrow_column

    names = [column.name for column in columns]
    if given is not None:
        if given.field_names() != names:
            raise ValueError(f"as_columns(): the columns of the query are {', '.join(names)}, in this order")
        return given
    fields = []
    for column in columns:
        try:
            data_type = data_type_of(column.type_info, "as_columns()")
            arrow_column(data_type, utc=True)
        except ConfigurationError:
            raise ValueError(
                f"as_columns(): the type of column {column.name!r} has no column of Arrow by itself; give all types: "
                "as_columns(DataTypes.ROW(...))"
            ) from None
        fields.append(RowField(column.name, data_type))
    return RowType(fields)


def _position(call: str, columns: Sequence[Column], name: str) -> int:
    names = [column.name for column in columns]
    if name not in names:
        raise ValueError(f"{call}(): the query has no column {name!r}; its columns are {', '.join(names)}")
    if not columns[names.index(name)].order_is_native:
        raise ValueError(f"{call}(): the database cannot order rows by {name!r}")
    return names.index(name)


def _positive(call: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{call}() takes a number above 0, got {value!r}")
    return value


def ranges_of(lowest: int, highest: int, count: int) -> list[tuple[int | None, int | None]]:
    """Return ranges (first value, value behind the last) of even length that cover all numbers; None is no limit.

    The outer ranges have no limit, so rows outside of the bounds that were found are read as well.

    >>> ranges_of(1, 10, 3)
    [(None, 5), (5, 8), (8, None)]
    """
    starts = [each.first for each in contiguous_ranges(lowest, highest, count)]
    limits: list[int | None] = [None, *starts[1:], None]
    return list(itertools.pairwise(limits))


def range_splits(ranges: Sequence[tuple[int | None, int | None]]) -> list[Split]:
    """Return a split for each range, and one for the rows whose column is null."""
    splits = [Split(f"range-{number}", each) for number, each in enumerate(ranges)]
    return [*splits, Split("nulls")]


class RangeReader(SplitReader):
    """Reads a split of `range_splits`, or all rows; its position is a `RowPosition`."""

    def __init__(self, query: OrderedQuery, split: Split, position: Any | None) -> None:
        conditions = []
        if split.id == "nulls":
            conditions.append(Condition("IS NULL"))
        elif split.what is not None:
            first, behind = split.what
            conditions += [Condition(">=", first)] if first is not None else []
            conditions += [Condition("<", behind)] if behind is not None else []
        self._rows = OrderedRows(query, conditions, None if position is None else RowPosition(*position))

    def read(self, max_records: int) -> Batch:
        return self._rows.read(max_records)

    def position(self) -> tuple[Any, int]:
        return tuple(self._rows.position)

    @property
    def finished(self) -> bool:
        return self._rows.ended

    def close(self) -> None:
        self._rows.close()


class _Limit(NamedTuple):
    """The highest value that was seen, and the transactions that may still add rows below it."""

    value: Any
    mark: int


class GrowingReader(SplitReader):
    """Reads the rows above the highest value read so far, in the order of the column.

    Transactions do not commit in the order of the numbers that they were given: row 6 may be visible before row 5. The
    reader therefore notes the highest visible value, waits until all transactions that were open then have ended, and
    only then reads up to that value.

    The position is (value behind which the run of rows begins, value at which it ends, position within the run).
    """

    def __init__(
        self, query: OrderedQuery, *, start_after: Any, position: Any | None, interval_ms: int, clock: Clock
    ) -> None:
        self._query = query
        self._failing = Failing(query.database)
        self._interval_s = interval_ms / 1000
        self._clock = clock
        self._next_poll = clock.monotonic()
        self._connection: Any = None
        self._limit: _Limit | None = None
        self._run: OrderedRows | None = None
        self._after, self._upto = start_after, None
        if position is not None:
            self._after, self._upto, in_run = position
            if self._upto is not None:
                self._run = self._rows_of_run(RowPosition(*in_run))

    def read(self, max_records: int) -> Batch:
        if self._run is None:
            self._poll_if_due()
        if self._run is None:
            return Batch([])
        batch = self._run.read(max_records)
        if self._run.ended:
            self._after, self._upto, self._run = self._upto, None, None
        return batch

    def position(self) -> tuple[Any, Any, tuple[Any, int] | None]:
        return self._after, self._upto, None if self._run is None else tuple(self._run.position)

    @property
    def finished(self) -> bool:
        return False

    def _poll_if_due(self) -> None:
        now = self._clock.monotonic()
        if now < self._next_poll:
            return
        self._next_poll = now + self._interval_s
        with self._failing.doing("look for new rows", self._query.query):
            try:
                self._poll()
            except BaseException:
                self.close()  # closed, so that the next attempt connects again
                raise

    def _poll(self) -> None:
        database = self._query.database
        if self._connection is None:
            self._connection = database.connect()
        if self._limit is None:
            above = [] if self._after is None else [Condition(">", self._after)]
            highest = self._query.scalar(self._connection, f"max({self._query.column})", above)
            self._connection.rollback()
            if highest is None:
                return
            self._limit = _Limit(highest, database.transaction_mark(self._connection))
        if database.is_settled(self._connection, self._limit.mark):
            self._upto, self._limit = self._limit.value, None
            self._run = self._rows_of_run(None)

    def _rows_of_run(self, position: RowPosition | None) -> OrderedRows:
        above = [] if self._after is None else [Condition(">", self._after)]
        return OrderedRows(self._query, [*above, Condition("<=", self._upto)], position)

    def close(self) -> None:
        """Close the connections."""
        if self._run is not None:
            self._run.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*self._query.database.errors()):  # the connection may be lost already
                connection.close()
