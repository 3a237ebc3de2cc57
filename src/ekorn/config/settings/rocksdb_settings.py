"""`RocksDBSettings`: how the RocksDB instances of a job are set up, as a value that travels to the slots.

Flink derives some of these sizes from its managed memory. Here they have fixed defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
LEVELS = 7  # of files, for `num-files-at-level`
# Flink's keys of the counters that RocksDB has where its statistics are on, and their names in the statistics.
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


@dataclass(frozen=True)
class RocksDBSettings:
    """The settings of the RocksDB instances of a job."""

    compaction_style: str = "UNIVERSAL"
    write_buffer_bytes: int = 32 * MEBIBYTE
    write_buffer_count: int = 2
    write_buffers_to_merge: int = 1
    block_cache_bytes: int = 64 * MEBIBYTE  # shared by all instances in a slot
    block_bytes: int = 4096
    metadata_block_bytes: int = 4096
    bloom_bits_per_key: int = 10  # 0: no Bloom filter
    target_file_bytes: int = 64 * MEBIBYTE
    level_base_bytes: int = 256 * MEBIBYTE
    dynamic_level_size: bool = False
    compression_per_level: tuple[str, ...] = ()  # empty: chosen to suit the compaction style
    background_threads: int = 2
    open_files: int = -1  # -1: no limit
    write_batch_bytes: int = 2 * MEBIBYTE
    memory_per_slot_bytes: int | None = None  # replaces the sizes of the block cache and of the write buffers
    local_directories: tuple[str, ...] = ()
    transfer_threads: int = 4
    options_factory: str | None = None
    cache_bytes: int = 256 * MEBIBYTE  # of entries in use, in front of all instances in a slot
    native_metrics: tuple[str, ...] = ()  # of `NATIVE_METRICS`: those that are reported
    counters: tuple[str, ...] = ()  # of `COUNTERS`: those that are reported; any of them turns RocksDB's statistics on


# Flink's predefined options: the fields in which each set differs from the defaults.
PREDEFINED: dict[str, dict[str, Any]] = {
    "DEFAULT": {},
    "SPINNING_DISK_OPTIMIZED": {
        "compaction_style": "LEVEL",
        "dynamic_level_size": True,
        "background_threads": 4,
    },
    "SPINNING_DISK_OPTIMIZED_HIGH_MEM": {
        "compaction_style": "LEVEL",
        "dynamic_level_size": True,
        "background_threads": 4,
        "block_cache_bytes": 256 * MEBIBYTE,
        "block_bytes": 128 * 1024,
        "target_file_bytes": 256 * MEBIBYTE,
        "level_base_bytes": 1024 * MEBIBYTE,
        "write_buffer_bytes": 64 * MEBIBYTE,
        "write_buffer_count": 4,
        "write_buffers_to_merge": 3,
    },
    "FLASH_SSD_OPTIMIZED": {
        "compaction_style": "LEVEL",
        "dynamic_level_size": True,
        "background_threads": 4,
    },
}
