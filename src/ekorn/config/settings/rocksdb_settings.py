"""`RocksDBSettings`: how the RocksDB instances of a job are set up, as a value that travels to the slots.

Flink derives some of these sizes from its managed memory. So does `for_slot`, if the memory of the slot is bounded;
else they have fixed defaults.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any

from ekorn.config.configuration import Configuration
from ekorn.config.options import rocksdb as options
from ekorn.config.options.memory import MEMORY_MANAGED_SIZE, MEMORY_PROCESS_SIZE, TASK_SLOTS
from ekorn.config.options.rocksdb import MEBIBYTE, rocksdb_options
from ekorn.config.settings.fields import filled_by, fillings
from ekorn.config.settings.memory_settings import SlotMemory, job_memory
from ekorn.errors import ConfigurationError
from ekorn.extras import need

__all__ = ["RocksDBSettings", "require_rocksdict", "rocksdb_settings"]


_ENTRIES_SHARE = 4  # the part of a bounded slot's other memory that entries in use may have


def _fixed(of_slot: int | None, of_task_manager: int | None, slots: int | None) -> int | None:
    if of_slot is not None or of_task_manager is None:
        return of_slot
    return of_task_manager // (slots or 1)


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
    memory_per_slot_bytes: int | None = filled_by(
        options.MEMORY_PER_SLOT, options.MEMORY_PER_TASK_MANAGER, TASK_SLOTS, by=_fixed
    )
    uses_managed: bool = filled_by(options.MEMORY_MANAGED, by=lambda given: given is not False)
    write_buffer_ratio: float = filled_by(options.WRITE_BUFFER_RATIO)
    local_directories: tuple[str, ...] = filled_by(options.LOCAL_DIRECTORIES)
    transfer_threads: int = filled_by(options.TRANSFER_THREADS)
    timer_factory: str = filled_by(options.TIMER_FACTORY)
    timer_cache_count: int = filled_by(options.TIMER_CACHE_SIZE)
    options_factory: str | None = filled_by(options.OPTIONS_FACTORY)
    cache_bytes: int = filled_by(options.CACHE_SIZE)
    native_metrics: tuple[str, ...] = ()  # the reported ones of `NATIVE_METRICS`
    counters: tuple[str, ...] = ()  # the reported ones of `COUNTERS`; any of them turns RocksDB's statistics on

    def for_slot(self, memory: SlotMemory) -> RocksDBSettings:
        """Return the settings in a slot with this memory."""
        settings = self
        if settings.memory_per_slot_bytes is None and settings.uses_managed and memory.managed_bytes:
            settings = replace(settings, memory_per_slot_bytes=memory.managed_bytes)
        if memory.process_bytes is not None:  # entries in use are Python objects, beside what RocksDB has
            most = (memory.process_bytes - (memory.managed_bytes or 0)) // _ENTRIES_SHARE
            settings = replace(settings, cache_bytes=min(settings.cache_bytes, most))
        return settings


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
    _refuse_managed_without_memory(configuration)
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


def _refuse_managed_without_memory(configuration: Configuration) -> None:
    """Refuse a job that asks for managed memory, if nothing says how large that is."""
    fixed = (options.MEMORY_PER_SLOT, options.MEMORY_PER_TASK_MANAGER)
    if not options.MEMORY_MANAGED.read(configuration) or any(option.find(configuration) for option in fixed):
        return
    if not job_memory(configuration, {}).other.managed_bytes:
        raise ConfigurationError(
            f"{options.MEMORY_MANAGED.key} is true, but there is no managed memory: set {MEMORY_MANAGED_SIZE.key}, a "
            f"total such as {MEMORY_PROCESS_SIZE.key}, or {options.MEMORY_PER_SLOT.key}"
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
