"""The options of a RocksDB instance, as objects of rocksdict, from the settings of the job."""

from __future__ import annotations

import importlib
from collections import deque
from functools import lru_cache
from typing import Any, NamedTuple

from ekorn.config.options.rocksdb import COMPRESSIONS
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.errors import ConfigurationError

# Universal compaction starts at this number of files. With more files reads are slower; with fewer, files are merged,
# and so written to checkpoints again, more often: docs/decisions/0015-rocksdb.md.
_FILES = 14
_GARBAGE_PERCENT = 100
_LEVELS = 7
# The newest files are written to checkpoints, so they are compressed small; most reads go to the oldest files, so these
# decompress fast.
_UNIVERSAL_COMPRESSION = ("ZSTD_COMPRESSION",) * (_LEVELS - 1) + ("LZ4_COMPRESSION",)
_LEVEL_COMPRESSION = ("LZ4_COMPRESSION",)


def make_options(rocksdict: Any, settings: RocksDBSettings) -> Any:
    """Return the options for an instance; `rocksdict` is the module, which is optional and imported by the caller."""
    options = rocksdict.Options(raw_mode=True)
    table = rocksdict.BlockBasedOptions()
    # Indexes and filters are part of the cache, so memory is bounded however large the state is. They are in small
    # partitions, because a filter larger than a shard of the cache would be read from disk with every lookup.
    table.set_cache_index_and_filter_blocks(True)
    table.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_pin_top_level_index_and_filter(True)
    # The newest files are small and many, and every read asks their filters: pinned, 0.3 instead of 0.7 microseconds.
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_metadata_block_size(settings.metadata_block_bytes)
    table.set_block_size(settings.block_bytes)
    table.set_format_version(5)
    if settings.bloom_bits_per_key:
        table.set_bloom_filter(settings.bloom_bits_per_key, False)
    per_slot, ratio = settings.memory_per_slot_bytes, settings.write_buffer_ratio
    memory = _shared_memory(rocksdict, settings.block_cache_bytes, per_slot, ratio)
    table.set_block_cache(memory.block_cache)
    if memory.write_buffer_manager is not None:
        options.set_write_buffer_manager(memory.write_buffer_manager)
    options.set_block_based_table_factory(table)
    options.set_write_buffer_size(settings.write_buffer_bytes)
    options.set_max_write_buffer_number(settings.write_buffer_count)
    options.set_min_write_buffer_number_to_merge(settings.write_buffers_to_merge)
    options.set_max_background_jobs(settings.background_threads)
    options.set_max_open_files(settings.open_files)
    options.set_max_manifest_file_size(1 << 16)  # the manifest grows with every file, and every checkpoint writes it
    options.set_keep_log_file_num(2)
    options.set_stats_dump_period_sec(0)
    if settings.counters:
        options.enable_statistics()
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


class _SharedMemory(NamedTuple):
    """The block cache of this process, and the bound of its write buffers where one sum is configured for both."""

    block_cache: Any
    write_buffer_manager: Any | None


_MOST_CACHES = 8
_CACHES: deque[Any] = deque(maxlen=_MOST_CACHES)  # of this process, for reports of their size


def block_cache_bytes() -> int | None:
    """Return the memory of the block caches of this process; None if there is none. Any thread may call it.

    With a fixed memory per slot the write buffers are part of it.
    """
    return sum(cache.get_usage() for cache in list(_CACHES)) if _CACHES else None


@lru_cache(maxsize=_MOST_CACHES)
def _shared_memory(rocksdict: Any, cache_bytes: int, per_slot_bytes: int | None, ratio: float) -> _SharedMemory:
    """Return what all instances of this process share, made on the first call.

    Flink: write buffers may exceed their bound by a half, since the active one still fills while another is written.
    Bound and cache are so much smaller that the sum is kept.
    """
    if per_slot_bytes is None:
        cache = rocksdict.Cache(cache_bytes)
        _CACHES.append(cache)
        return _SharedMemory(cache, None)
    cache = rocksdict.Cache(int((3 - ratio) * per_slot_bytes / 3))
    _CACHES.append(cache)
    bound = int(2 * ratio * per_slot_bytes / 3)
    manager = rocksdict.WriteBufferManager.new_write_buffer_manager_with_cache(bound, False, cache)
    return _SharedMemory(cache, manager)


def _factory(path: str) -> Any:
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        factory = getattr(importlib.import_module(module), name)()
        if not callable(getattr(factory, "create_db_options", None)):
            raise AttributeError("the class has no method create_db_options(options)")
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"state.backend.rocksdb.options-factory is {path!r}, which is not a usable Python class: {error}"
        ) from error
    return factory
