"""Flink's option keys for RocksDB.

`ekorn.config.settings.rocksdb_settings` reads them. A key below `state.backend.rocksdb.` that is not declared here is
refused, and so is a value that ekorn cannot honour. No setting is ignored silently.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, within
from ekorn.config.value_text import parse_bool, parse_choice, parse_float, parse_int, parse_list, parse_memory_bytes

PREFIX = "state.backend.rocksdb."
MEBIBYTE = 1 << 20

# Flink's names of compression types, and rocksdict's.
COMPRESSIONS = {
    "NO_COMPRESSION": "none",
    "SNAPPY_COMPRESSION": "snappy",
    "ZLIB_COMPRESSION": "zlib",
    "BZLIB2_COMPRESSION": "bz2",
    "LZ4_COMPRESSION": "lz4",
    "LZ4HC_COMPRESSION": "lz4hc",
    "ZSTD_COMPRESSION": "zstd",
}

# Flink's keys of RocksDB's own metrics, and the properties of RocksDB behind them.
NATIVE_METRICS = (
    "actual-delayed-write-rate", "background-errors", "block-cache-capacity", "block-cache-pinned-usage",
    "block-cache-usage", "compaction-pending", "cur-size-active-mem-table", "cur-size-all-mem-tables",
    "estimate-live-data-size", "estimate-num-keys", "estimate-pending-compaction-bytes", "estimate-table-readers-mem",
    "is-write-stopped", "live-sst-files-size", "mem-table-flush-pending", "num-deletes-active-mem-table",
    "num-deletes-imm-mem-tables", "num-entries-active-mem-table", "num-entries-imm-mem-tables", "num-files-at-level",
    "num-immutable-mem-table", "num-live-versions", "num-running-compactions", "num-running-flushes", "num-snapshots",
    "size-all-mem-tables", "total-sst-files-size",
)  # fmt: skip
LEVELS = 7  # the levels of files that `num-files-at-level` counts
# Flink's keys of the counters that RocksDB keeps while its statistics are on, and their names in the statistics.
COUNTERS = {
    "block-cache-hit": "block.cache.hit",
    "block-cache-miss": "block.cache.miss",
    "bloom-filter-full-positive": "bloom.filter.full.positive",
    "bloom-filter-full-true-positive": "bloom.filter.full.true.positive",
    "bloom-filter-useful": "bloom.filter.useful",
    "bytes-read": "bytes.read",
    "bytes-written": "bytes.written",
    "compaction-read-bytes": "compact.read.bytes",
    "compaction-write-bytes": "compact.write.bytes",
    "iter-bytes-read": "db.iter.bytes.read",
    "stall-micros": "stall.micros",
}


# ---------------------------------------------------------------------------------------------------- kinds of options


def _bytes(key: str, default: int, sentence: str, least: int = 1) -> ConfigOption[int]:
    return ConfigOption(PREFIX + key, parse_memory_bytes, default, (), "bytes", sentence, at_least(least))


def _count(key: str, default: int, sentence: str, least: int = 1) -> ConfigOption[int]:
    return ConfigOption(PREFIX + key, parse_int, default, (), "", sentence, at_least(least))


def _flag(key: str, default: bool, sentence: str) -> ConfigOption[bool]:
    return ConfigOption(PREFIX + key, parse_bool, default, sentence=sentence)


def _only(key: str, allowed: str, why: str) -> ConfigOption[str]:
    """Declare a key that accepts only the value that always applies; `why` refuses another value."""

    def parse(text: str) -> str:
        if text.strip().lower() != allowed.lower():
            raise ValueError(why)
        return allowed

    return ConfigOption(PREFIX + key, parse, allowed, sentence=why)


def _folders(text: str) -> tuple[str, ...]:
    # Flink takes the path of a URL and drops its host, so file://var/db is the folder /db.
    parts = re.sub(r"\bfile:(//[^/,:]*)?(?=/)", "", text).replace("file://", "").replace(os.pathsep, ",").split(",")
    folders = tuple(part.strip().rstrip("/") or "/" for part in parts if part.strip())
    for folder in folders:
        if not os.path.isabs(folder):
            raise ValueError(f"{folder!r} is not an absolute path")
    return folders


def _compressions(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().upper() for name in parse_list(text.replace(",", ";")))
    for name in names:
        if name not in COMPRESSIONS:
            raise ValueError(f"{name!r} is not a compression type; choose from {', '.join(COMPRESSIONS)}")
    if not names:
        raise ValueError("name at least one compression type")
    return names


# ------------------------------------------------------------------------------------------------------- the options

PREDEFINED_OPTIONS = ConfigOption[str](
    PREFIX + "predefined-options",
    parse_choice("DEFAULT", "SPINNING_DISK_OPTIMIZED", "SPINNING_DISK_OPTIMIZED_HIGH_MEM", "FLASH_SSD_OPTIMIZED"),
    "DEFAULT",
    sentence="A predefined set of settings. Single keys override it.",
)
COMPACTION_STYLE = ConfigOption[str](
    PREFIX + "compaction.style",
    parse_choice("LEVEL", "UNIVERSAL", "NONE"),
    "UNIVERSAL",
    sentence="UNIVERSAL rewrites less data, which keeps incremental checkpoints small. LEVEL needs less disk space.",
)
WRITE_BUFFER_SIZE = _bytes(
    "writebuffer.size", 32 * MEBIBYTE, "The size of a write buffer, which is collected in memory and written as a file."
)
WRITE_BUFFER_COUNT = _count("writebuffer.count", 2, "The maximum number of write buffers in memory.", 2)
WRITE_BUFFERS_TO_MERGE = _count(
    "writebuffer.number-to-merge", 1, "The number of write buffers that are merged into one file."
)
BLOCK_CACHE_SIZE = _bytes(
    "block.cache-size", 64 * MEBIBYTE, "The size of the block cache, which all instances in a slot share.", 65536
)
BLOCK_SIZE = _bytes("block.blocksize", 4096, "The size of a block, the unit in which files are read and cached.", 1024)
METADATA_BLOCK_SIZE = _bytes(
    "block.metadata-blocksize",
    4096,
    "The size of a block of an index or filter, the unit in which they are read.",
    1024,
)
USE_BLOOM_FILTER = _flag(
    "use-bloom-filter",
    True,  # Flink: false
    "Whether files have Bloom filters, which avoid reads of files that do not contain a key.",
)
BLOOM_BITS = _count("bloom-filter.bits-per-key", 10, "The number of bits per key in Bloom filters.")
TARGET_FILE_SIZE = _bytes("compaction.level.target-file-size-base", 64 * MEBIBYTE, "The target size of a file.", 1024)
LEVEL_BASE_SIZE = _bytes(
    "compaction.level.max-size-level-base", 256 * MEBIBYTE, "The maximum size of the first level.", 1024
)
DYNAMIC_LEVEL_SIZE = _flag(
    "compaction.level.use-dynamic-size",
    False,
    "Whether the sizes of levels are derived from the size of the last level.",
)
COMPRESSION_PER_LEVEL = ConfigOption[tuple[str, ...]](
    PREFIX + "compression.per.level",
    _compressions,
    (),
    sentence="The compression of files: one type for all levels, or one per level. The default depends on "
    "compaction.style.",
)
BACKGROUND_THREADS = _count("thread.num", 2, "The number of threads of an instance that write and merge files.")
OPEN_FILES = _count("files.open", -1, "The maximum number of open files; -1 means no limit.", -1)
WRITE_BATCH_SIZE = _bytes("write-batch-size", 2 * MEBIBYTE, "The maximum size of a batch of writes.")
MEMORY_PER_SLOT = ConfigOption[int | None](
    PREFIX + "memory.fixed-per-slot",
    parse_memory_bytes,
    None,
    unit="bytes",
    sentence="The memory for the block cache and write buffers of all instances in a slot. It replaces their separate "
    "sizes.",
    check=at_least(MEBIBYTE),
)
MEMORY_PER_TASK_MANAGER = ConfigOption[int | None](
    PREFIX + "memory.fixed-per-tm",
    parse_memory_bytes,
    None,
    unit="bytes",
    sentence="As memory.fixed-per-slot, for `taskmanager.numberOfTaskSlots` slots together.",
    check=at_least(MEBIBYTE),
)
MEMORY_MANAGED = ConfigOption[bool | None](
    PREFIX + "memory.managed",
    parse_bool,
    None,
    sentence="Whether the memory for blocks and write buffers is the managed memory of the slot "
    "(`taskmanager.memory.managed.*`), if that is bounded and no fixed size is set. By default, it is.",
)
WRITE_BUFFER_RATIO = ConfigOption(
    PREFIX + "memory.write-buffer-ratio",
    parse_float,
    0.5,
    sentence="The fraction of managed or fixed memory that write buffers may take.",
    check=within(0.01, 0.99),
)
LOCAL_DIRECTORIES = ConfigOption[tuple[str, ...]](
    PREFIX + "localdir", _folders, (), sentence="The folders for working state on the machines of the slots."
)
TRANSFER_THREADS = _count(
    "checkpoint.transfer.thread.num", 4, "The number of files that a subtask transfers in parallel."
)
TIMER_FACTORY = ConfigOption[str](
    PREFIX + "timer-service.factory",
    parse_choice("ROCKSDB", "HEAP"),
    "ROCKSDB",
    sentence="Where timers are: ROCKSDB keeps them on disk, with the next ones to fire in memory; HEAP keeps all of "
    "them in memory.",
)
TIMER_CACHE_SIZE = _count(
    "timer-service.cache-size",
    128,
    "The number of timers that are read at once for each key group, where timers are in RocksDB. Fewer are read if "
    "they do not fit into ekorn.state.rocksdb.cache-size.",
)
OPTIONS_FACTORY = ConfigOption[str | None](
    PREFIX + "options-factory",
    str,
    None,
    sentence="The import path of a Python class whose create_db_options(options) may change the rocksdict.Options.",
)
CACHE_SIZE = ConfigOption[int](
    "ekorn.state.rocksdb.cache-size",
    parse_memory_bytes,
    256 * MEBIBYTE,
    unit="bytes",
    sentence="The size of the cache of state entries that all instances in a slot share, in front of RocksDB.",
    check=at_least(1 << 16),
)

NATIVE: dict[str, ConfigOption[bool]] = {
    name: _flag(f"metrics.{name}", False, f"Whether RocksDB's property `{name}` is reported as a metric.")
    for name in NATIVE_METRICS
}
COUNTED: dict[str, ConfigOption[bool]] = {
    name: _flag(
        f"metrics.{name}",
        False,
        f"Whether RocksDB's counter `{name}` is reported as a metric. Counting makes every access to RocksDB slower.",
    )
    for name in COUNTERS
}
REFUSED_METRICS = {"column-family-as-variable": "all states of an operator share one column family, 'default'"}

CONDITIONS = (
    _only(
        "memory.high-prio-pool-ratio",
        "0.1",
        "the block cache has no pool of high priority: indexes and filters are cached in small blocks",
    ),
    _only("bloom-filter.block-based-mode", "false", "RocksDB no longer supports block-based filters"),
    _only(
        "memory.partitioned-index-filters",
        "true",
        "indexes and filters are always partitioned: unpartitioned ones of a large state do not fit into a bounded "
        "cache",
    ),
)


def rocksdb_options() -> Iterator[ConfigOption[Any]]:
    """Return every option that is declared here."""
    yield from (value for value in globals().values() if isinstance(value, ConfigOption))
    yield from NATIVE.values()
    yield from COUNTED.values()
    yield from CONDITIONS
