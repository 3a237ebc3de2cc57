"""A query read without end, by a column that grows with every inserted row."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from ekorn.clock import Clock
from ekorn.connectors.jdbc.database import Failing
from ekorn.connectors.jdbc.ordered_query import Condition, OrderedQuery, OrderedRows, Place
from ekorn.functions.source_contract import Batch, SplitReader


class _Limit(NamedTuple):
    """The highest value that was seen, and the transactions that may still add rows below it."""

    value: Any
    mark: int


class GrowingReader(SplitReader):
    """Reads the rows above the highest value read so far, in the order of the column.

    Transactions do not commit in the order of the numbers that they were given: row 6 may be visible before row 5. The
    reader therefore notes the highest visible value, waits until all transactions that were open then have ended, and
    only then reads up to that value.

    The position is (value behind which the run of rows begins, value at which it ends, place within the run).
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
            self._after, self._upto, place = position
            if self._upto is not None:
                self._run = self._rows_of_run(Place(*place))

    def read(self, max_records: int) -> Batch:
        if self._run is None:
            self._poll_if_due()
        if self._run is None:
            return Batch([])
        rows = self._run.read(max_records)
        if self._run.ended:
            self._after, self._upto, self._run = self._upto, None, None
        return Batch(rows)

    def position(self) -> tuple[Any, Any, tuple[Any, int] | None]:
        return self._after, self._upto, None if self._run is None else tuple(self._run.place)

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
                self.close()  # the next attempt connects again
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

    def _rows_of_run(self, place: Place | None) -> OrderedRows:
        above = [] if self._after is None else [Condition(">", self._after)]
        return OrderedRows(self._query, [*above, Condition("<=", self._upto)], place)

    def close(self) -> None:
        """Close the connections."""
        if self._run is not None:
            self._run.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*self._query.database.errors()):  # it may be lost already
                connection.close()
