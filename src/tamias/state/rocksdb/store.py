"""One RocksDB instance in a folder of its own: opened, read, written, linked into a checkpoint, closed.

All of an operator's states share one column family; `rocksdb_keys.py` says how addresses keep them apart. Nothing is
logged ahead: what is not in a checkpoint is lost with the slot anyway, and is computed again.

What RocksDB reports becomes a `StateError` that names the folder.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tamias.config.rocksdb_options import require_rocksdict
from tamias.config.rocksdb_settings import COMPRESSIONS, RocksDBSettings
from tamias.errors import ConfigurationError, StateError
from tamias.keygroups import KeyGroupRange
from tamias.state.rocksdb.key_bytes import PREFIX

META = b"\xff\xff"
"""What is no state but says something of all of them: behind the last key group that can be."""

# With universal compaction. Many files make reads slow, few of them mean that files are merged, and written to
# checkpoints again, often: docs/decisions/0015-rocksdb.md.
_FILES = 14
_GARBAGE_PERCENT = 100
_LEVELS = 7
# Of the newest files, which checkpoints write, fewer bytes; of the oldest, which most reads go to, faster ones.
_UNIVERSAL_COMPRESSION = ("ZSTD_COMPRESSION",) * (_LEVELS - 1) + ("LZ4_COMPRESSION",)
_LEVEL_COMPRESSION = ("LZ4_COMPRESSION",)


@dataclass(frozen=True)
class SortedFile:
    """What is known of one of an instance's files."""

    bytes: int
    entries: int  # deletions among them
    deletions: int


class RocksStore:
    """A RocksDB instance. Used by one thread, but for `checkpoint`'s result, which is plain files."""

    def __init__(self, folder: str, settings: RocksDBSettings, *, create: bool = True, read_only: bool = False) -> None:
        require_rocksdict()
        import rocksdict

        self.folder = folder
        self._settings = settings
        self._rocksdict = rocksdict
        access = rocksdict.AccessType.read_only() if read_only else rocksdict.AccessType.read_write()
        options = _options(rocksdict, settings)
        options.create_if_missing(create)
        try:
            self._db = rocksdict.Rdict(folder, options, access_type=access)
        except Exception as error:  # rocksdict has no class of its own for what RocksDB reports
            raise StateError(f"cannot open RocksDB in {folder!r}: {error}") from error
        self._write_options = rocksdict.WriteOptions()
        self._write_options.disable_wal = True
        self._db.set_write_options(self._write_options)
        self._raw_get = self._db.get
        self.deletions = 0  # made here; whoever merges files may set it back
        self._cancelled = False

    # -------------------------------------------------------------------------------------------------------- reading

    def get(self, address: bytes) -> bytes | None:
        """The value at an address, or None."""
        try:
            value: bytes | None = self._raw_get(address)
        except Exception as error:
            raise self._failed("read", error) from error
        return value

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Addresses and values from one address up to, and without, another, as they are now."""
        bounds = self._rocksdict.ReadOptions()
        bounds.set_iterate_upper_bound(end)
        bounds.set_total_order_seek(True)
        found = self._db.iter(bounds)
        found.seek(first)
        return self._walk(found, bounds)

    def _walk(self, found: Any, bounds: Any) -> Iterator[tuple[bytes, bytes]]:
        # rocksdict: the iterator points into its read options without keeping them. Were they collected before it ends,
        # it would run past its bound into other states' entries; so they are held here.
        valid, key, value, step = found.valid, found.key, found.value, found.next
        while valid():
            yield key(), value()
            step()
        try:
            found.status()  # an iterator that meets a damaged block just ends
        except Exception as error:
            raise self._failed("read", error) from error
        del bounds

    # -------------------------------------------------------------------------------------------------------- writing

    def batch(self) -> WriteBatch:
        """Writes that are made together, in pieces of bounded size."""
        return WriteBatch(self, self._rocksdict.WriteBatch, self._settings.write_batch_bytes)

    def write(self, batch: Any) -> None:
        """Make the writes of one of rocksdict's batches."""
        try:
            self._db.write(batch, self._write_options)
        except Exception as error:
            raise self._failed("write", error) from error

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Remove all addresses from one up to, and without, another."""
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
        """Add entries that come in ascending order and are not there yet; faster than writing them."""
        path = os.path.join(self.folder, "ingest.sst")
        writer = self._rocksdict.SstFileWriter(options=_options(self._rocksdict, self._settings))
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
        """Write what is in memory to files."""
        try:
            self._db.flush()
        except Exception as error:
            raise self._failed("write", error) from error

    def files(self) -> list[SortedFile]:
        """The files that there are now."""
        found = self._db.live_files()
        return [SortedFile(file["size"], file["num_entries"], file["num_deletions"]) for file in found]

    def compact(self) -> None:
        """Merge all files now, which leaves out what was deleted. May be called on a thread of its own."""
        self.flush()
        beside_others = self._rocksdict.CompactOptions()
        beside_others.set_exclusive_manual_compaction(False)
        try:
            self._db.compact_range(None, None, beside_others)
        except Exception as error:
            raise self._failed("merge files of", error) from error

    def cancel(self) -> None:
        """End what goes on in the background; nothing but `destroy` can follow."""
        self._cancelled = True
        self._db.cancel_all_background(True)

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def checkpoint(self, folder: str) -> None:
        """Make a folder that holds everything as it is now: files that never change are linked, not copied."""
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
            if not self._cancelled:  # else it says that it could not write what is in memory
                raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _failed(self, what: str, error: Exception) -> StateError:
        return StateError(f"cannot {what} RocksDB in {self.folder!r}: {error}")


class WriteBatch:
    """Collects writes, and makes them whenever there are enough; `done` makes the last ones."""

    __slots__ = ("_limit", "_make", "_size", "_store", "_writes")

    def __init__(self, store: RocksStore, make: Callable[..., Any], limit_bytes: int) -> None:
        self._store = store
        self._make = make
        self._limit = limit_bytes
        self._size = 0
        self._writes = make(raw_mode=True)

    def put(self, address: bytes, value: bytes) -> None:  # hot
        """Write a value."""
        self._writes.put(address, value)
        self._size += len(address) + len(value)
        if self._size > self._limit:
            self.done()

    def put_all(self, entries: Iterable[tuple[bytes, bytes]]) -> int:  # hot
        """Write many values; how many bytes they have."""
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
        """Remove what is at an address, if anything is."""
        self._writes.delete(address)
        self._store.deletions += 1
        self._size += len(address)
        if self._size > self._limit:
            self.done()

    def done(self) -> None:
        """Make the writes collected so far."""
        if not self._writes.is_empty():
            self._store.write(self._writes)
            self._writes = self._make(raw_mode=True)
        self._size = 0


# ------------------------------------------------------------------------------------------------------------- options


def _options(rocksdict: Any, settings: RocksDBSettings) -> Any:
    options = rocksdict.Options(raw_mode=True)
    table = rocksdict.BlockBasedOptions()
    # Indexes and filters are part of the cache, so that memory is bounded however large the state is; and in small
    # partitions: a filter larger than a shard of the cache would be read from disk with every lookup.
    table.set_cache_index_and_filter_blocks(True)
    table.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_pin_top_level_index_and_filter(True)
    # The newest files are small and many, and every read asks their filters: 0.3 instead of 0.7 microseconds each.
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_metadata_block_size(settings.metadata_block_bytes)
    table.set_block_size(settings.block_bytes)
    table.set_format_version(5)
    if settings.bloom_bits_per_key:
        table.set_bloom_filter(settings.bloom_bits_per_key, False)
    cache, buffers = _shared_memory(settings.block_cache_bytes, settings.memory_per_slot_bytes)
    table.set_block_cache(cache)
    if buffers is not None:
        options.set_write_buffer_manager(buffers)
    options.set_block_based_table_factory(table)
    options.set_write_buffer_size(settings.write_buffer_bytes)
    options.set_max_write_buffer_number(settings.write_buffer_count)
    options.set_min_write_buffer_number_to_merge(settings.write_buffers_to_merge)
    options.set_max_background_jobs(settings.background_threads)
    options.set_max_open_files(settings.open_files)
    options.set_max_manifest_file_size(1 << 16)  # it grows with every file, and every checkpoint writes it
    options.set_keep_log_file_num(2)
    options.set_stats_dump_period_sec(0)
    _set_compaction(rocksdict, options, settings)
    if settings.options_factory is not None:
        _factory(settings.options_factory).create_db_options(options)
    return options


def _set_compaction(rocksdict: Any, options: Any, settings: RocksDBSettings) -> None:
    options.set_target_file_size_base(settings.target_file_bytes)
    options.set_max_bytes_for_level_base(settings.level_base_bytes)
    options.set_level_compaction_dynamic_level_bytes(settings.dynamic_level_size)
    is_universal = settings.compaction_style == "UNIVERSAL"
    by_style = _UNIVERSAL_COMPRESSION if is_universal else _LEVEL_COMPRESSION
    names = settings.compression_per_level or by_style
    kinds = [getattr(rocksdict.DBCompressionType, COMPRESSIONS[name])() for name in names]
    if len(kinds) == 1:
        options.set_compression_type(kinds[0])
    else:
        options.set_compression_per_level(kinds)
    if settings.compaction_style == "NONE":
        options.set_disable_auto_compactions(True)
    elif is_universal:
        options.set_compaction_style(rocksdict.DBCompactionStyle.universal())
        options.set_num_levels(_LEVELS)
        options.set_level_zero_file_num_compaction_trigger(_FILES)
        options.set_level_zero_slowdown_writes_trigger(2 * _FILES)
        options.set_level_zero_stop_writes_trigger(3 * _FILES)
        universal = rocksdict.UniversalCompactOptions()
        universal.max_size_amplification_percent = _GARBAGE_PERCENT
        options.set_universal_compaction_options(universal)


@lru_cache(maxsize=8)
def _shared_memory(cache_bytes: int, per_slot_bytes: int | None) -> tuple[Any, Any]:
    """The block cache of this process, and what bounds its write buffers where one sum is given for both."""
    import rocksdict

    if per_slot_bytes is None:
        return rocksdict.Cache(cache_bytes), None
    cache = rocksdict.Cache(per_slot_bytes)
    half = per_slot_bytes // 2  # Flink: half of it may be write buffers
    return cache, rocksdict.WriteBufferManager.new_write_buffer_manager_with_cache(half, False, cache)


def _factory(path: str) -> Any:
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        factory = getattr(importlib.import_module(module), name)()
        if not callable(getattr(factory, "create_db_options", None)):
            raise AttributeError("it has no method create_db_options(options)")
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"state.backend.rocksdb.options-factory is {path!r}, which is no Python class that can be used: {error}"
        ) from error
    return factory
