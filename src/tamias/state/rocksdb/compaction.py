"""When all files of an instance are merged, beside what RocksDB decides by itself.

A merged file is a new one, and an incremental checkpoint writes it. RocksDB's universal compaction, as it is set up in
`rocksdb_store.py`, merges small files with small ones, and everything once the newer files are together as large as
the oldest: what is no longer needed never takes more room than what is. Two things it cannot know:

* The first checkpoint writes everything anyway. Files of a first load that are merged before it are written once, and
  not again with some later checkpoint: `settle`.
* What deletes an entry is small, however large the entry. RocksDB can be told to merge files with many deletions, but
  then does so at once: with 1% of the entries replaced by others between checkpoints, two of three checkpoints wrote
  everything. `tidy` counts entries instead of bytes: dead ones are never more than live ones.

Where RocksDB is told to merge nothing (`compaction.style: NONE`) nothing is merged here either.
"""

from __future__ import annotations

import threading

from tamias.state.rocksdb.store import RocksStore

SETTLE_BYTES = 128 << 20  # more is left to RocksDB: the job stands still meanwhile
FEW_DELETIONS = 10_000


class Merging:
    """Merges the files of one instance. Used by the instance's thread; `tidy` lets another one do it."""

    def __init__(self, store: RocksStore, is_allowed: bool = True) -> None:
        self._store = store
        self._is_allowed = is_allowed
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def settle(self) -> None:
        """Merge all files now, unless they are so large that it would take long."""
        if not self._is_allowed:
            return
        self._store.flush()
        files = self._store.files()
        if len(files) > 1 and sum(file.bytes for file in files) <= SETTLE_BYTES:
            self._store.compact()

    def tidy(self) -> None:
        """Begin to merge all files if half of what was written to them is deleted.

        Raises:
            StateError: The last time it went wrong.
        """
        if self._error is not None:
            raise self._error
        if self._is_allowed and self._store.deletions >= FEW_DELETIONS and not self.is_busy and self._is_half_dead():
            self._begin()

    def _is_half_dead(self) -> bool:
        files = self._store.files()
        deleted = sum(file.deletions for file in files)
        return deleted >= FEW_DELETIONS and 2 * deleted >= sum(file.entries for file in files) - deleted

    def _begin(self) -> None:
        self._store.deletions = 0
        self._thread = threading.Thread(target=self._merge, name="rocksdb-merging", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether files are being merged."""
        return self._thread is not None and self._thread.is_alive()

    def _merge(self) -> None:
        try:
            self._store.compact()
        except Exception as error:
            self._error = error  # for `tidy` to raise

    def stop(self) -> None:
        """End what is going on, for the instance to be destroyed."""
        if self._thread is not None and self._thread.is_alive():
            self._store.cancel()
            self._thread.join()
