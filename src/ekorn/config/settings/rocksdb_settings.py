"""`RocksDBSettings`: how the RocksDB instances of a job are set up, as a value that travels to the slots.

Flink derives some of these sizes from its managed memory. Here they have fixed defaults.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any

from ekorn.config.configuration import Configuration
from ekorn.config.options import rocksdb as options
from ekorn.config.options.rocksdb import MEBIBYTE, rocksdb_options
from ekorn.config.settings.fields import filled_by, fillings
from ekorn.errors import ConfigurationError
from ekorn.extras import need

__all__ = ["RocksDBSettings", "require_rocksdict", "rocksdb_settings"]


@dataclass(frozen=True)
class RocksDBSettings:
    """The settings of the RocksDB instances of a job."""

    compaction_style: str = filled_by(options.COMPACTION_STYLE)
    write_buffer_bytes: int = filled_by(options.WRITE_BUFFER_SIZE)
    write_buffer_count: int = filled_by(options.WRITE_BUFFER_COUNT)
    write_buffers_to_merge: int = filled_by(options.WRITE_BUFFERS_TO_MERGE)
    block_cache_bytes: int = filled_by(options.BLOCK_CACHE_SIZE)
    block_bytes: int = filled_by(options.BLOCK_SIZE)
    metadata_block_bytes: int = filled_by(options.METADATA_BLOCK_SIZE)
    bloom_bits_per_key: int = filled_by(  # 0: no Bloom filter
        options.BLOOM_BITS, options.USE_BLOOM_FILTER, by=lambda bits, used: bits if used else 0
    )
    target_file_bytes: int = filled_by(options.TARGET_FILE_SIZE)
    level_base_bytes: int = filled_by(options.LEVEL_BASE_SIZE)
    dynamic_level_size: bool = filled_by(options.DYNAMIC_LEVEL_SIZE)
    compression_per_level: tuple[str, ...] = filled_by(options.COMPRESSION_PER_LEVEL)
    background_threads: int = filled_by(options.BACKGROUND_THREADS)
    open_files: int = filled_by(options.OPEN_FILES)
    write_batch_bytes: int = filled_by(options.WRITE_BATCH_SIZE)
    memory_per_slot_bytes: int | None = filled_by(options.MEMORY_PER_SLOT)
    local_directories: tuple[str, ...] = filled_by(options.LOCAL_DIRECTORIES)
    transfer_threads: int = filled_by(options.TRANSFER_THREADS)
    options_factory: str | None = filled_by(options.OPTIONS_FACTORY)
    cache_bytes: int = filled_by(options.CACHE_SIZE)
    native_metrics: tuple[str, ...] = ()  # the reported ones of `NATIVE_METRICS`
    counters: tuple[str, ...] = ()  # the reported ones of `COUNTERS`; any of them turns RocksDB's statistics on


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


def rocksdb_settings(configuration: Configuration) -> RocksDBSettings:
    """Read the settings of RocksDB from a configuration.

    Raises:
        ConfigurationError: A key is not known, or a value cannot be honoured.
    """
    _refuse_unknown(configuration)
    for option in options.CONDITIONS:
        option.read(configuration)
    predefined = PREDEFINED[options.PREDEFINED_OPTIONS.read(configuration)]
    given = {
        name: filling.read(configuration)
        for name, filling in fillings(RocksDBSettings).items()
        if any(option.find(configuration) for option in (filling.option, *filling.others))
    }
    return replace(
        RocksDBSettings(),
        **{**predefined, **given},
        native_metrics=tuple(name for name, option in options.NATIVE.items() if option.read(configuration)),
        counters=tuple(name for name, option in options.COUNTED.items() if option.read(configuration)),
    )


def require_rocksdict() -> None:
    """Check that the package `rocksdict` is installed.

    Raises:
        ConfigurationError: It is not. The message says what to install.
    """
    need("rocksdb", "state in RocksDB")


def _refuse_unknown(configuration: Configuration) -> None:
    known = {option.key for option in rocksdb_options()}
    for key in sorted(configuration.to_dict()):
        if key.startswith(options.PREFIX) and key not in known:
            name = key.removeprefix(f"{options.PREFIX}metrics.")
            if name in options.REFUSED_METRICS:
                raise ConfigurationError(f"{key!r} is refused: {options.REFUSED_METRICS[name]}")
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "docs/state_backends.md lists the keys that have an effect"
            raise ConfigurationError(f"{key!r} has no effect here and is therefore refused: {hint}")
