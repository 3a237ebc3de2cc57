"""Heap tables of states with a time to live: their background cleanup, and snapshots without expired entries.

`ttl_handles.py` says when an entry has expired, and has the handles, which also remove expired entries that they meet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.clock import Clock
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.kinds import KINDS, bare_kind
from ekorn.state.table import Table
from ekorn.state.ttl_handles import Expiry

Left = Callable[[Any, int], Any]
"""Return what is left of an entry: `DeclaredShape.left`."""


def expire(table: Table, config: StateTtlConfig, clock: Clock, every_record: list[Callable[[], object]]) -> Expiry:
    """Apply a time to live to a heap table: to its accesses, to every record and to snapshots.

    Args:
        table: The table.
        config: The configuration in the descriptor.
        clock: The source of processing time.
        every_record: Receives the calls that the operator makes with every record.
    """
    left = KINDS[bare_kind(table.info.kind)].shape.left
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
        self._keys: list[Any] = []  # the keys of the current round
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
