"""`RocksStore`: one RocksDB instance in a folder of its own.

All states of an operator share one column family; `key_bytes.py` says how their addresses differ. There is no
write-ahead log: what is not in a checkpoint is lost with the slot anyway, and is computed again.

An error of RocksDB becomes a `StateError` that names the folder.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ekorn.config.settings.rocksdb_settings import RocksDBSettings, require_rocksdict
from ekorn.errors import StateError
from ekorn.keygroups import KeyGroupRange
from ekorn.state.rocksdb.key_bytes import PREFIX
from ekorn.state.rocksdb.store_options import make_options

_COUNTER = re.compile(r"^rocksdb\.(\S+) COUNT : (\d+)$", re.MULTILINE)  # a line of the statistics

META = b"\xff\xff"
"""The prefix of entries about the instance itself. It sorts behind the last possible key group."""


@dataclass(frozen=True)
class SortedFile:
    """The size and the entries of one file of an instance."""

    bytes: int
    entries: int  # deletions included
    deletions: int


class RocksStore:
    """A RocksDB instance. Not thread-safe, except for `compact` and for the files that `checkpoint` makes."""

    def __init__(self, folder: str, settings: RocksDBSettings, *, create: bool = True, read_only: bool = False) -> None:
        require_rocksdict()
        import rocksdict

        self.folder = folder
        self._settings = settings
        self._rocksdict = rocksdict
        access = rocksdict.AccessType.read_only() if read_only else rocksdict.AccessType.read_write()
        options = self._options = make_options(rocksdict, settings)
        options.create_if_missing(create)
        try:
            self._db = rocksdict.Rdict(folder, options, access_type=access)
        except Exception as error:  # rocksdict has no exception class of its own for errors of RocksDB
            raise StateError(f"cannot open RocksDB in {folder!r}: {error}") from error
        self._write_options = rocksdict.WriteOptions()
        self._write_options.disable_wal = True
        self._db.set_write_options(self._write_options)
        self._raw_get = self._db.get
        self.deletions = 0  # counted since the instance was opened; `Merging` sets the counts back
        self.deleted_by_range = 0  # those of them that files do not count
        self._cancelled = False

    # -------------------------------------------------------------------------------------------------------- reading

    def get(self, address: bytes) -> bytes | None:
        """Return the value at an address, or None."""
        try:
            value: bytes | None = self._raw_get(address)
        except Exception as error:
            raise self._failed("read", error) from error
        return value

    def get_all(self, addresses: list[bytes]) -> list[bytes | None]:
        """Return the values at some addresses, or None."""
        try:
            values: list[bytes | None] = self._raw_get(addresses)
        except Exception as error:
            raise self._failed("read", error) from error
        return values

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the addresses and values from `first` to before `end`, as they are now."""
        bounds = self._rocksdict.ReadOptions()
        bounds.set_iterate_upper_bound(end)
        bounds.set_total_order_seek(True)
        found = self._db.iter(bounds)
        found.seek(first)
        return self._walk(found, bounds)

    def _walk(self, found: Any, bounds: Any) -> Iterator[tuple[bytes, bytes]]:
        # rocksdict: the iterator points into its read options without keeping them alive. If they were collected first,
        # the iterator would run past its bound into the entries of other states. This frame keeps them alive.
        valid, key, value, step = found.valid, found.key, found.value, found.next
        while valid():
            yield key(), value()
            step()
        try:
            found.status()  # an iterator that meets a damaged block ends without an error
        except Exception as error:
            raise self._failed("read", error) from error
        del bounds

    def number(self, name: str) -> int:
        """Return a property of RocksDB that is a number, such as `estimate-num-keys`."""
        found = self._db.property_value(f"rocksdb.{name}")
        if found is None:
            raise StateError(f"RocksDB in {self.folder!r} has no property {name!r}")
        return int(found)

    def counters(self) -> dict[str, int]:
        """Return what RocksDB has counted since the instance was opened, by its names, where its statistics are on."""
        text = self._options.get_statistics() or ""
        return {name: int(count) for name, count in _COUNTER.findall(text)}

    # -------------------------------------------------------------------------------------------------------- writing

    def batch(self) -> WriteBatch:
        """Return a new batch of writes."""
        return WriteBatch(self, self._rocksdict.WriteBatch, self._settings.write_batch_bytes)

    def write(self, batch: Any) -> None:
        """Apply a batch of rocksdict."""
        try:
            self._db.write(batch, self._write_options)
        except Exception as error:
            raise self._failed("write", error) from error

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Remove the addresses from `first` to before `end`."""
        try:
            self._db.delete_range(first, end)
        except Exception as error:
            raise self._failed("write", error) from error

    def keep_groups(self, key_groups: KeyGroupRange) -> None:
        """Remove the entries of other key groups."""
        if key_groups.first > 0:
            self.delete_range(PREFIX.pack(0, 0), PREFIX.pack(key_groups.first, 0))
        self.delete_range(PREFIX.pack(key_groups.last + 1, 0), META)

    def ingest(self, entries: Iterator[tuple[bytes, bytes]]) -> None:
        """Add entries that come in ascending order and are not there yet. This is faster than writing them."""
        path = os.path.join(self.folder, "ingest.sst")
        writer = self._rocksdict.SstFileWriter(options=make_options(self._rocksdict, self._settings))
        try:
            writer.open(path)
            empty = True
            for address, value in entries:
                writer[address] = value
                empty = False
            if empty:
                return
            writer.finish()
            moving = self._rocksdict.IngestExternalFileOptions()
            moving.set_move_files(True)
            self._db.ingest_external_file([path], moving)
        except StateError:
            raise
        except Exception as error:
            raise self._failed("write", error) from error
        finally:
            if os.path.exists(path):
                os.unlink(path)

    def flush(self) -> None:
        """Write the memory tables to files."""
        try:
            self._db.flush()
        except Exception as error:
            raise self._failed("write", error) from error

    def files(self) -> list[SortedFile]:
        """Return the current files."""
        found = self._db.live_files()
        return [SortedFile(file["size"], file["num_entries"], file["num_deletions"]) for file in found]

    def compact(self) -> None:
        """Merge all files now, which drops deleted entries. May be called on a thread of its own."""
        self.flush()
        beside_others = self._rocksdict.CompactOptions()
        beside_others.set_exclusive_manual_compaction(False)
        try:
            self._db.compact_range(None, None, beside_others)
        except Exception as error:
            raise self._failed("merge files of", error) from error

    def cancel(self) -> None:
        """Stop all background work; only `destroy` may be called afterwards."""
        self._cancelled = True
        self._db.cancel_all_background(True)

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def checkpoint(self, folder: str) -> None:
        """Create a folder with the current state of the instance. Files that never change are linked, not copied."""
        try:
            self._rocksdict.Checkpoint(self._db).create_checkpoint(folder)
        except Exception as error:
            raise self._failed("write a checkpoint of", error) from error

    def close(self) -> None:
        """Close the instance; the folder stays."""
        self._db.close()

    def destroy(self) -> None:
        """Close the instance and remove the folder."""
        try:
            self._db.close()
        except Exception:
            if not self._cancelled:  # a cancelled instance reports that it could not write its memory tables
                raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _failed(self, what: str, error: Exception) -> StateError:
        return StateError(f"cannot {what} RocksDB in {self.folder!r}: {error}")


class WriteBatch:
    """Collect writes and apply them whenever they reach a number of bytes; `done` applies the rest."""

    __slots__ = ("_limit", "_make", "_size", "_store", "_writes")

    def __init__(self, store: RocksStore, make: Callable[..., Any], limit_bytes: int) -> None:
        self._store = store
        self._make = make
        self._limit = limit_bytes
        self._size = 0
        self._writes = make(raw_mode=True)

    def put(self, address: bytes, value: bytes) -> None:  # hot
        self._writes.put(address, value)
        self._size += len(address) + len(value)
        if self._size > self._limit:
            self.done()

    def put_all(self, entries: Iterable[tuple[bytes, bytes]]) -> int:  # hot
        """Write many values and return the sum of their sizes in bytes."""
        put, limit, size, values = self._writes.put, self._limit, self._size, 0
        for address, value in entries:
            put(address, value)
            values += len(value)
            size += len(address) + len(value)
            if size > limit:
                self.done()
                put, size = self._writes.put, 0
        self._size = size
        return values

    def delete(self, address: bytes) -> None:
        """Remove the entry at an address, if there is one."""
        self._writes.delete(address)
        self._store.deletions += 1
        self._size += len(address)
        if self._size > self._limit:
            self.done()

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Remove the addresses from `first` to before `end`. Call `deleted_by_range` with the number of entries."""
        self._writes.delete_range(first, end)
        self._size += len(first) + len(end)

    def deleted_by_range(self, entries: int) -> None:
        """Count entries that were deleted by ranges, so that files are merged when there are many."""
        self._store.deletions += entries
        self._store.deleted_by_range += entries

    def done(self) -> None:
        """Apply the writes collected so far."""
        if not self._writes.is_empty():
            self._store.write(self._writes)
            self._writes = self._make(raw_mode=True)
        self._size = 0
