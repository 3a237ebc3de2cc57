"""When the entries of a state expire, and the background cleanup of heap tables.

An entry of a state with a time to live is kept with its stamp, the time of its last access: `(stamp_ms, value)`. A list
has a stamp per element, a map has one per entry. An entry has expired when its stamp plus the time to live is now or in
the past. Checkpoints contain only stamps: the time to live, what renews a stamp and the cleanup may change from run to
run, and the new rules apply to old stamps too.

The handles are in `ttl_handles.py`; they also remove expired entries that they meet. `rocksdb/sweep.py` cleans up
RocksDB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.clock import Clock
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.table import Table

Left = Callable[[Any, int], Any]
"""Return what is left of an entry without the parts stamped up to a time: the entry itself, a part of it, or None."""


class Expiry:
    """The time to live of a state, as its handle needs it."""

    __slots__ = ("access", "restamps", "shows_expired", "ttl_ms")

    def __init__(self, config: StateTtlConfig, access: Callable[[], int]) -> None:
        self.access = access  # called at every access: lets the background cleanup run and returns the time
        self.ttl_ms = config.get_ttl().to_milliseconds()
        self.restamps = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        visibility = config.get_state_visibility()
        self.shows_expired = visibility is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp


def expire(
    table: Table, kind: str, config: StateTtlConfig, clock: Clock, every_record: list[Callable[[], object]]
) -> Expiry:
    """Apply a time to live to a heap table: to its accesses, to every record and to snapshots.

    Args:
        table: The table.
        kind: The kind of state, without its scope.
        config: The configuration in the descriptor.
        clock: The source of processing time.
        every_record: Receives the calls that the operator makes with every record.
    """
    left = left_of(kind)
    ttl_ms, strategies = config.get_ttl().to_milliseconds(), config.get_cleanup_strategies()
    if strategies.in_full_snapshot():
        table.leave_out = lambda data: _unexpired(data, left, clock.now_ms() - ttl_ms)
    incremental = strategies.get_incremental_cleanup_strategy()
    if incremental is None:
        return Expiry(config, clock.now_ms)
    cleanup = IncrementalCleanup(table, left, ttl_ms, incremental.get_cleanup_size(), clock)
    if incremental.run_cleanup_for_every_record():
        every_record.append(cleanup.step)
    return Expiry(config, cleanup.step)


class IncrementalCleanup:
    """Check a few entries of a table with each step; after the last entry a new round begins.

    Flink: like Flink's cleanup with synchronous snapshots, a round walks through a copy of the keys, because a
    dictionary cannot be walked while it grows. The copy is made once per round, which is a fraction of a key per step.
    """

    __slots__ = ("_at", "_data", "_keys", "_left", "_mark", "_now_ms", "_size", "_ttl_ms")

    def __init__(self, table: Table, left: Left, ttl_ms: int, size: int, clock: Clock) -> None:
        self._data = table.data
        self._mark = table.mark
        self._left = left
        self._ttl_ms = ttl_ms
        self._size = size
        self._now_ms = clock.now_ms
        self._keys: list[Any] = []  # of the current round
        self._at = 0  # how many of the keys have been checked

    def step(self) -> int:  # hot
        """Check the next entries, remove what has expired, and return the time."""
        now_ms = self._now_ms()
        data, left, dead_ms, first = self._data, self._left, now_ms - self._ttl_ms, self._at
        some = self._keys[first : first + self._size]
        if not some:
            first, self._keys = 0, list(data)
            some = self._keys[: self._size]
        self._at = first + self._size
        for key in some:
            kept = data.get(key)
            if kept is None:
                continue  # removed since the round began
            rest = left(kept, dead_ms)
            if rest is kept:
                continue
            if rest is None:
                del data[key]
            else:
                data[key] = rest
            self._mark(key)
        return now_ms


def _unexpired(data: dict[Any, Any], left: Left, dead_ms: int) -> dict[Any, Any]:
    rests = ((key, left(kept, dead_ms)) for key, kept in data.items())
    return {key: rest for key, rest in rests if rest is not None}


def _value_left(kept: tuple[int, Any], dead_ms: int) -> tuple[int, Any] | None:
    return kept if kept[0] > dead_ms else None


def _elements_left(kept: list[tuple[int, Any]], dead_ms: int) -> list[tuple[int, Any]] | None:
    rest = [element for element in kept if element[0] > dead_ms]
    return kept if len(rest) == len(kept) else rest or None


def _entries_left(kept: dict[Any, tuple[int, Any]], dead_ms: int) -> dict[Any, tuple[int, Any]] | None:
    rest = {key: entry for key, entry in kept.items() if entry[0] > dead_ms}
    return kept if len(rest) == len(kept) else rest or None


def left_of(kind: str) -> Left:
    """Return the function for a kind of state, given without its scope."""
    return _LEFT.get(kind, _value_left)


_LEFT: dict[str, Left] = {"list": _elements_left, "map": _entries_left}
