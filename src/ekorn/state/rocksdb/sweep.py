"""Remove expired entries from RocksDB that the job no longer reads.

rocksdict offers no compaction filter. Instead a sweep walks through the entries of a state, some of them in every
epoch, and deletes the expired ones; RocksDB drops them when it merges files, which it does soon for a file with many
deletions. After a round that found no entry to expire before some time, the sweep rests until that time. Long-lived
entries are therefore not read again and again.

A sweep does not touch entries that changed since they were last written to RocksDB, nor lists in use: reads remove
expired entries that they meet.

Flink documents the logger of its compaction filter. Here the sweeps log to it, at the level DEBUG.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator

from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.keygroups import KeyGroupRange
from ekorn.state.rocksdb.limits import RocksLimits
from ekorn.state.rocksdb.list_tables import ListTable
from ekorn.state.rocksdb.store import RocksStore, WriteBatch
from ekorn.state.rocksdb.tables import RocksTable
from ekorn.state.rocksdb.value_bytes import split_original, stamp_of, with_original, without_original
from ekorn.types.by_value import dumps

_log = logging.getLogger("org.rocksdb.FlinkCompactionFilter")  # Flink: the name in its documentation
_SEQUENCE_BYTES = 8

StoredEntries = list[tuple[bytes, bytes]]
"""Addresses and values that are checked together: one entry, or all pieces of a list."""


class Sweep:
    """The sweep through one state. Each step continues where the last one stopped."""

    def __init__(
        self,
        table: RocksTable,
        store: RocksStore,
        key_groups: KeyGroupRange,
        *,
        now_ms: Callable[[], int],
        config: StateTtlConfig,
        limits: RocksLimits,
    ) -> None:
        self.checked = 0  # entries, since the sweep exists
        self.rests_until_ms: int | None = None
        self._table = table
        self._store = store
        self._key_groups = key_groups
        self._now_ms = now_ms
        self._limits = limits
        self._ttl_ms = config.get_ttl().to_milliseconds()
        strategy = config.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy()
        self._look_at_clock_after = 1000 if strategy is None else max(strategy.get_query_time_after_num_entries(), 1)
        period_ms = 0 if strategy is None else strategy.get_periodic_compaction_time().to_millis()
        self._longest_rest_ms = period_ms or None  # Flink: a period of 0 turns the periodic compaction off
        self._ranges: Iterator[tuple[bytes, bytes]] | None = None  # the ranges of this round that are not begun
        self._at: tuple[bytes, bytes] | None = None  # the rest of the current range
        self._oldest_ms = 0  # the oldest stamp that this round left in place or may have missed

    @property
    def in_round(self) -> bool:
        """Whether a round has begun and not ended."""
        return self._at is not None

    def step(self) -> int:
        """Check the entries of one epoch; return how many were removed."""
        return self._check(self._limits.swept_entries)

    def finish(self) -> int:
        """Check the whole rest of the round; return how many entries were removed."""
        return self._check(None)

    def _check(self, limit: int | None) -> int:
        now_ms, range_cost = self._now_ms(), self._limits.swept_range_cost
        if self._ranges is None:
            if self.rests_until_ms is not None and now_ms < self.rests_until_ms:
                return 0
            self._ranges, self._began_ms, self._oldest_ms = self._table.ranges(self._key_groups), now_ms, now_ms
            self._at = next(self._ranges, None)
        batch, removed = self._store.batch(), 0
        dead_ms, seen, look_at, ranges = now_ms - self._ttl_ms, 0, self._look_at_clock_after, 0
        while self._at is not None and (limit is None or seen + ranges * range_cost < limit):
            for pieces in self._together(*self._at):
                if limit is not None and seen + ranges * range_cost >= limit:
                    self._at = (pieces[0][0], self._at[1])
                    break
                seen += len(pieces)
                if seen >= look_at:
                    look_at += self._look_at_clock_after
                    dead_ms = self._now_ms() - self._ttl_ms
                removed += self._clean(pieces, dead_ms, batch)
            else:
                ranges += 1
                self._at = next(self._ranges, None)
        batch.done()
        self.checked += seen
        if self._at is None:
            self._rest()
        if seen and _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "state %r: checked %d entries in RocksDB, removed %d; TTL: %d ms, current timestamp: %d ms%s",
                self._table.info.name, seen, removed, self._ttl_ms, now_ms,
                "" if self._at is not None else f"; the next round begins at {self.rests_until_ms} ms",
            )  # fmt: skip
        return removed

    def _rest(self) -> None:
        """End the round. Entries written since it began are no older than its beginning."""
        self._ranges = None
        self.rests_until_ms = self._oldest_ms + self._ttl_ms
        if self._longest_rest_ms is not None:
            self.rests_until_ms = min(self.rests_until_ms, self._began_ms + self._longest_rest_ms)

    def _together(self, start: bytes, end: bytes) -> Iterator[StoredEntries]:
        if not isinstance(self._table, ListTable):
            for entry in self._store.scan(start, end):
                yield [entry]
            return
        pieces: StoredEntries = []
        for address, value in self._store.scan(start, end):
            if pieces and not address.startswith(pieces[0][0][:-_SEQUENCE_BYTES]):
                yield pieces
                pieces = []
            pieces.append((address, value))
        if pieces:
            yield pieces

    def _clean(self, pieces: StoredEntries, dead_ms: int, batch: WriteBatch) -> int:
        if isinstance(self._table, ListTable):
            return self._clean_list(self._table, pieces, dead_ms, batch)
        ((address, value),) = pieces
        stamp_ms = stamp_of(without_original(value))
        if stamp_ms > dead_ms:
            self._oldest_ms = min(self._oldest_ms, stamp_ms)
            return 0
        batch.delete(address)
        self._table.forget_one(address, value)
        return 1

    def _clean_list(self, table: ListTable, pieces: StoredEntries, dead_ms: int, batch: WriteBatch) -> int:
        before = [pickle.loads(without_original(value)) for _, value in pieces]
        after = [[element for element in piece if element[0] > dead_ms] for piece in before]
        removed = sum(map(len, before)) - sum(map(len, after))
        if removed and table.is_known(pieces[0][0], pieces[0][1]):
            self._oldest_ms = min(self._oldest_ms, dead_ms)  # the list is in use; the next round follows soon
            return 0
        alive = [stamp_ms for piece in after for stamp_ms, _ in piece]
        self._oldest_ms = min([self._oldest_ms, *alive])
        for (address, value), old, new in zip(pieces, before, after, strict=True):
            if new or (alive and address.endswith(bytes(_SEQUENCE_BYTES))):  # the first piece stays with the others
                if len(new) < len(old):
                    original = split_original(value)[0]
                    raw = dumps(new)
                    batch.put(address, raw if original is None else with_original(original, raw))
            else:
                batch.delete(address)
        return removed
