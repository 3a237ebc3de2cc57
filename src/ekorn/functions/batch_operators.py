"""Batch functions for common tasks: the first row of each key, its best rows, and events that do not come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.keyed_batch_function import KeyedBatchContext, KeyedBatchFunction
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.state.batch_states import BatchRuntimeContext, BatchValueState
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.types.data_types import DataTypes, RowField, RowType
from ekorn.types.factory import Types
from ekorn.types.time import Duration

__all__ = ["Absence", "Deduplicate", "TopK"]

_MOST_KEPT = 100


class Deduplicate(KeyedBatchFunction):
    """Keeps the first row of each key.

    Example:
        >>> from ekorn.common import Time
        >>> from ekorn.datastream.state import StateTtlConfig
        >>> an_hour = StateTtlConfig.new_builder(Time.hours(1)).build()
        >>> Deduplicate(ttl=an_hour)
        Deduplicate()
    """

    def __init__(self, ttl: StateTtlConfig | None = None) -> None:
        """Create the function.

        Args:
            ttl: When a key is forgotten, so that the next row of the key is kept again. By default it is never
                forgotten.
        """
        self._ttl = ttl

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        if self._ttl is not None:
            descriptor.enable_time_to_live(self._ttl)
        assert isinstance(runtime_context, BatchRuntimeContext)
        self._seen = runtime_context.get_state(descriptor)

    def process_batch(self, batch: Any, ctx: KeyedBatchContext) -> Any:
        fresh = ~self._seen.present()
        first = (ctx.rank() == 0) & ctx.to_rows(fresh)
        self._seen.update(True, where=fresh)
        yield ctx.of_rows(batch.filter(first), first)

    def __repr__(self) -> str:
        return "Deduplicate()"


class TopK(KeyedBatchFunction):
    """Keeps each row that is among the best ones of its key when it comes, by the numbers in a column.

    A row is kept if fewer than `k` rows of its key so far have a number that is as good or better. Null and NaN are
    never among the best. The numbers are compared as floats of 64 bits.
    """

    def __init__(self, column: str, k: int, *, smallest: bool = False) -> None:
        """Create the function.

        Args:
            column: The column with the numbers.
            k: How many rows of a key are the best ones.
            smallest: Whether small numbers are the better ones.
        """
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= _MOST_KEPT:
            raise ValueError(f"TopK takes a number of rows from 1 to {_MOST_KEPT}, got {k!r}")
        self._column = column
        self._k = k
        self._smallest = smallest

    def open(self, runtime_context: RuntimeContext) -> None:
        assert isinstance(runtime_context, BatchRuntimeContext)
        self._best: list[BatchValueState] = [
            runtime_context.get_state(ValueStateDescriptor(f"best {number}", Types.DOUBLE()))
            for number in range(1, self._k + 1)
        ]

    def process_batch(self, batch: Any, ctx: KeyedBatchContext) -> Any:
        import numpy as np

        sign = -1.0 if self._smallest else 1.0  # the state has the numbers, and `best` the scores
        scores = sign * batch.column(self._column).cast("float64").to_numpy(zero_copy_only=False)
        best = sign * np.stack([state.values(fill=-sign * np.inf) for state in self._best], axis=1)  # descending
        known = np.stack([state.present() for state in self._best], axis=1)
        kept = np.zeros(len(scores), dtype=np.bool_)
        keys = ctx.key_of_row()
        full = known[:, -1]
        open_rows = np.flatnonzero(~np.isnan(scores) & (~full[keys] | (scores > best[keys, -1])))
        while len(open_rows):  # the first open row of each key, then the second one, and so on
            _, firsts = np.unique(keys[open_rows], return_index=True)
            rows = open_rows[np.sort(firsts)]
            of = keys[rows]
            enters = ~known[of, -1] | (scores[rows] > best[of, -1])
            rows, of = rows[enters], of[enters]
            kept[rows] = True
            candidates = np.concatenate([best[of], scores[rows, None]], axis=1)
            there = np.concatenate([known[of], np.ones((len(of), 1), dtype=np.bool_)], axis=1)
            order = np.lexsort((-candidates, ~there), axis=1)[:, :-1]
            best[of], known[of] = np.take_along_axis(candidates, order, 1), np.take_along_axis(there, order, 1)
            open_rows = np.delete(open_rows, firsts)
            open_rows = open_rows[~known[keys[open_rows], -1] | (scores[open_rows] > best[keys[open_rows], -1])]
        for number, state in enumerate(self._best):
            state.update(sign * best[:, number], where=known[:, number])
        yield ctx.of_rows(batch.filter(kept), kept)

    def __repr__(self) -> str:
        return f"TopK({self._column!r}, {self._k})"


Condition = Callable[[Any], Any]


class Absence(KeyedBatchFunction):
    """Emits a key if an event is not followed by another one of the key in time.

    A result has the key columns, and `since`: the timestamp of the last event that was not followed, in milliseconds.
    Its own timestamp is the end of the time. A further event of the first kind begins the time anew. The stream needs
    timestamps and watermarks.

    Example:
        >>> import pyarrow.compute as pc
        >>> from ekorn.common import Duration
        >>> Absence(
        ...     after=lambda batch: pc.equal(batch["kind"], "order"),
        ...     of=lambda batch: pc.equal(batch["kind"], "payment"),
        ...     within=Duration.of_minutes(30),
        ... )
        Absence(within 1800000 ms)
    """

    def __init__(self, *, after: Condition, of: Condition, within: Duration) -> None:
        """Create the function.

        Args:
            after: Returns for each row of a batch whether it is an event that another one is to follow.
            of: Returns for each row of a batch whether it is the event that is to follow.
            within: The time in which it is to follow.
        """
        self._after = after
        self._of = of
        self._within_ms = within.to_millis()

    def result_type(self, row_type: RowType, keys: tuple[str, ...]) -> RowType:
        if "since" in keys:
            raise InvalidProgramError("Absence has a column 'since' in its results; give the key column another name")
        return RowType([*(row_type[name] for name in keys), RowField("since", DataTypes.BIGINT())])

    def open(self, runtime_context: RuntimeContext) -> None:
        assert isinstance(runtime_context, BatchRuntimeContext)
        self._since = runtime_context.get_state(ValueStateDescriptor("since", Types.LONG()))

    def process_batch(self, batch: Any, ctx: KeyedBatchContext) -> Any:
        import numpy as np

        times = ctx.timestamps()
        if times is None:
            raise InvalidProgramError(
                "Absence needs timestamps: call assign_timestamps_and_watermarks() before key_by()"
            )
        begins, ends = (np.asarray(each(batch)).astype(np.bool_) for each in (self._after, self._of))
        last = ctx.max(np.where(begins | ends, np.arange(len(times)), -1))  # the last event of each key
        seen = last >= 0
        pending, since = seen & begins[last], times[last]
        ctx.delete_event_time_timers(self._since.values(fill=0) + self._within_ms, where=seen & self._since.present())
        self._since.clear(where=seen & ~pending)
        self._since.update(since, where=pending)
        ctx.register_event_time_timers(since + self._within_ms, where=pending)

    def on_timers(self, keys: Any, timestamps: Any, ctx: KeyedBatchContext) -> Any:
        yield keys.append_column("since", self._since.values(fill=0))
        self._since.clear()

    def __repr__(self) -> str:
        return f"Absence(within {self._within_ms} ms)"
