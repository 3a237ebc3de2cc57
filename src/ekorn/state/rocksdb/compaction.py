"""Decide when all files of an instance are merged, in addition to the merges of RocksDB itself.

A merged file is a new file, which an incremental checkpoint writes. RocksDB's universal compaction (`store_options.py`)
merges small files with small files, and all files once the newer ones are together as large as the oldest. So obsolete
entries never take more room than current ones. RocksDB cannot know two things:

* The first checkpoint writes everything anyway. If the files of a first load are merged before it, they are written
  once, and not again with a later checkpoint: `settle`.
* A deletion is small, however large the deleted entry. RocksDB can merge files with many deletions, but then does so
  at once: with 1% of the entries replaced by others between checkpoints, two of three checkpoints wrote
  everything. `tidy` counts entries instead of bytes: there are never more dead entries than live ones.

With `compaction.style: NONE` neither RocksDB nor this module merges anything.
"""

from __future__ import annotations

import threading

from ekorn.state.rocksdb.limits import RocksLimits
from ekorn.state.rocksdb.store import RocksStore


class Merging:
    """Merge the files of one instance. Called on the thread of the instance; `tidy` merges on a thread of its own."""

    def __init__(self, store: RocksStore, limits: RocksLimits, is_allowed: bool = True) -> None:
        self._store = store
        self._limits = limits
        self._is_allowed = is_allowed
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def settle(self) -> None:
        """Merge all files now, unless they are so large that it would take long."""
        if not self._is_allowed:
            return
        self._store.flush()
        files = self._store.files()
        if len(files) > 1 and sum(file.bytes for file in files) <= self._limits.settle_bytes:
            self._store.compact()

    def tidy(self) -> None:
        """Start to merge all files if half of their entries are deleted.

        Raises:
            StateError: The last merge failed.
        """
        if self._error is not None:
            raise self._error
        few = self._limits.few_deletions
        if self._is_allowed and self._store.deletions >= few and not self.is_busy and self._is_half_dead():
            self.begin()

    def _is_half_dead(self) -> bool:
        files = self._store.files()
        deleted = sum(file.deletions for file in files) + self._store.deleted_by_range
        return deleted >= self._limits.few_deletions and 2 * deleted >= sum(file.entries for file in files) - deleted

    def begin(self) -> None:
        """Merge all files on a thread of its own."""
        self._store.deletions = self._store.deleted_by_range = 0
        self._thread = threading.Thread(target=self._merge, name="rocksdb-merging", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether a merge is running."""
        return self._thread is not None and self._thread.is_alive()

    def _merge(self) -> None:
        try:
            self._store.compact()
        except Exception as error:
            self._error = error  # for `tidy` to raise

    def wait(self) -> None:
        """Wait until no merge is running."""
        if self._thread is not None:
            self._thread.join()

    def stop(self) -> None:
        """Stop a running merge, so that the instance can be destroyed."""
        if self.is_busy:
            self._store.cancel()
        self.wait()
