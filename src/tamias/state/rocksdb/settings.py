"""How RocksDB is set up: Flink's option keys, read once into a value that travels to the slots.

A key below `state.backend.rocksdb.` that is not listed here is refused, and so is a value that cannot be had: nothing
that is asked for goes unheard. What Flink derives from managed memory has fixed defaults here.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tamias.config.configuration import Configuration
from tamias.config.option import ConfigOption
from tamias.config.value_text import parse_bool, parse_choice, parse_int, parse_list, parse_memory_bytes
from tamias.errors import ConfigurationError
from tamias.storage.scratch_folders import LocalFolder

PREFIX = "state.backend.rocksdb."
MEBIBYTE = 1 << 20

COMPRESSIONS = {
    "NO_COMPRESSION": "none",
    "SNAPPY_COMPRESSION": "snappy",
    "ZLIB_COMPRESSION": "zlib",
    "BZLIB2_COMPRESSION": "bz2",
    "LZ4_COMPRESSION": "lz4",
    "LZ4HC_COMPRESSION": "lz4hc",
    "ZSTD_COMPRESSION": "zstd",
}


@dataclass(frozen=True)
class RocksDBSettings:
    """The settings of the RocksDB instances of a job."""

    compaction_style: str = "UNIVERSAL"
    write_buffer_bytes: int = 32 * MEBIBYTE
    write_buffer_count: int = 2
    write_buffers_to_merge: int = 1
    block_cache_bytes: int = 64 * MEBIBYTE  # of all instances in a slot together
    block_bytes: int = 4096
    metadata_block_bytes: int = 4096
    bloom_bits_per_key: int = 10  # 0 for no filter
    target_file_bytes: int = 64 * MEBIBYTE
    level_base_bytes: int = 256 * MEBIBYTE
    dynamic_level_size: bool = False
    compression_per_level: tuple[str, ...] = ()  # as suits the compaction style
    background_threads: int = 2
    open_files: int = -1
    write_batch_bytes: int = 2 * MEBIBYTE
    memory_per_slot_bytes: int | None = None  # instead of a block cache and write buffers of their own sizes
    local_directories: tuple[str, ...] = ()
    transfer_threads: int = 4
    options_factory: str | None = None
    cache_bytes: int = 256 * MEBIBYTE  # of entries in use, in front of all instances in a slot


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
    """What a configuration says of RocksDB.

    Raises:
        ConfigurationError: A key is not known or a value cannot be honoured.
    """
    _refuse_unknown(configuration)
    for option in _CONDITIONS:
        option.read(configuration)
    settings = replace(RocksDBSettings(), **PREDEFINED[PREDEFINED_OPTIONS.read(configuration)])
    given = {field: option.read(configuration) for field, option in _FIELDS.items() if option.find(configuration)}
    if not USE_BLOOM_FILTER.read(configuration):
        given["bloom_bits_per_key"] = 0
    return replace(settings, **given)


def local_folder(directories: tuple[str, ...], index: int) -> LocalFolder:
    """A new folder for one subtask's instance, in the directories by turns.

    Raises:
        ConfigurationError: It cannot be made.
    """
    directory = directories[index % len(directories)]
    try:
        return LocalFolder(directory)
    except OSError as error:
        raise ConfigurationError(
            f"{LOCAL_DIRECTORIES.key} is {directory!r}, where this slot cannot make a folder: {error}"
        ) from error


def require_rocksdict() -> None:
    """Say what to install where the package is missing.

    Raises:
        ConfigurationError: It is.
    """
    if importlib.util.find_spec("rocksdict") is None:
        raise ConfigurationError(
            "state is, or was saved, in RocksDB, for which the package 'rocksdict' is needed and not installed: "
            "pip install tamias[rocksdb], here and wherever the slots run"
        )


def _refuse_unknown(configuration: Configuration) -> None:
    known = {option.key for option in (*_FIELDS.values(), *_CONDITIONS, PREDEFINED_OPTIONS, USE_BLOOM_FILTER)}
    for key in sorted(configuration.to_dict()):
        if key.startswith(PREFIX) and key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see docs/state_backends.md for those that are heeded"
            raise ConfigurationError(f"{key!r} has no effect here and is therefore refused: {hint}")


# ------------------------------------------------------------------------------------------------------------- the keys


def _at_least(least: int) -> Callable[[Any], str | None]:
    return lambda value: None if value >= least else f"must be at least {least}"


def _bytes(key: str, default: int, sentence: str, least: int = 1) -> ConfigOption[Any]:
    return ConfigOption(PREFIX + key, parse_memory_bytes, default, (), "bytes", sentence, _at_least(least))


def _count(key: str, default: int, sentence: str, least: int = 1) -> ConfigOption[Any]:
    return ConfigOption(PREFIX + key, parse_int, default, (), "", sentence, _at_least(least))


def _only(key: str, allowed: str, why: str) -> ConfigOption[str]:
    """A key that can be said to be what it is anyway, and nothing else."""

    def parse(text: str) -> str:
        if text.strip().lower() != allowed.lower():
            raise ValueError(why)
        return allowed

    return ConfigOption(PREFIX + key, parse, allowed, sentence=why)


def _folders(text: str) -> tuple[str, ...]:
    parts = text.replace("file://", "").replace(os.pathsep, ",").split(",")
    folders = tuple(part.strip() for part in parts if part.strip())
    for folder in folders:
        if not os.path.isabs(folder):
            raise ValueError(f"{folder!r} is not an absolute path")
    return folders


def _compressions(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().upper() for name in parse_list(text.replace(",", ";")))
    for name in names:
        if name not in COMPRESSIONS:
            raise ValueError(f"there is no {name!r}; there are {', '.join(COMPRESSIONS)}")
    if not names:
        raise ValueError("name at least one")
    return names


_DEFAULT = RocksDBSettings()

PREDEFINED_OPTIONS = ConfigOption[str](
    PREFIX + "predefined-options",
    parse_choice(*PREDEFINED),
    "DEFAULT",
    sentence="A set of settings to start from; single keys override it.",
)
USE_BLOOM_FILTER = ConfigOption[bool](
    PREFIX + "use-bloom-filter",
    parse_bool,
    True,  # Flink: false
    sentence="Whether files have filters that tell keys they do not hold.",
)
LOCAL_DIRECTORIES = ConfigOption[tuple[str, ...]](
    PREFIX + "localdir", _folders, (), sentence="Folders for working state on the slots' machines."
)
TRANSFER_THREADS = _count(
    "checkpoint.transfer.thread.num", _DEFAULT.transfer_threads, "How many files a subtask copies at once."
)
OPTIONS_FACTORY = ConfigOption[str | None](
    PREFIX + "options-factory",
    str,
    None,
    sentence="A Python class, by its import path, whose create_db_options(options) may change rocksdict.Options.",
)

_FIELDS: dict[str, ConfigOption[Any]] = {
    "compaction_style": ConfigOption[str](
        PREFIX + "compaction.style",
        parse_choice("LEVEL", "UNIVERSAL", "NONE"),
        _DEFAULT.compaction_style,
        sentence="UNIVERSAL rewrites less, which keeps incremental checkpoints small; LEVEL takes less disk.",
    ),
    "write_buffer_bytes": _bytes(
        "writebuffer.size", _DEFAULT.write_buffer_bytes, "Bytes collected in memory before a file is written."
    ),
    "write_buffer_count": _count("writebuffer.count", _DEFAULT.write_buffer_count, "Write buffers at most.", 2),
    "write_buffers_to_merge": _count(
        "writebuffer.number-to-merge", _DEFAULT.write_buffers_to_merge, "Write buffers merged into one file."
    ),
    "block_cache_bytes": _bytes(
        "block.cache-size", _DEFAULT.block_cache_bytes, "Memory for blocks of files, of all instances in a slot.", 65536
    ),
    "block_bytes": _bytes("block.blocksize", _DEFAULT.block_bytes, "The unit that is read and cached.", 1024),
    "metadata_block_bytes": _bytes(
        "block.metadata-blocksize", _DEFAULT.metadata_block_bytes, "The same for indexes and filters.", 1024
    ),
    "bloom_bits_per_key": _count("bloom-filter.bits-per-key", _DEFAULT.bloom_bits_per_key, "Bits per key in filters."),
    "target_file_bytes": _bytes(
        "compaction.level.target-file-size-base", _DEFAULT.target_file_bytes, "How large files grow.", 1024
    ),
    "level_base_bytes": _bytes(
        "compaction.level.max-size-level-base", _DEFAULT.level_base_bytes, "How large the first level grows.", 1024
    ),
    "dynamic_level_size": ConfigOption[bool](
        PREFIX + "compaction.level.use-dynamic-size",
        parse_bool,
        _DEFAULT.dynamic_level_size,
        sentence="Whether levels are sized by the last one.",
    ),
    "compression_per_level": ConfigOption[tuple[str, ...]](
        PREFIX + "compression.per.level",
        _compressions,
        _DEFAULT.compression_per_level,
        sentence="How files are compressed: one for all levels, or one for each; without it as suits compaction.style.",
    ),
    "background_threads": _count(
        "thread.num", _DEFAULT.background_threads, "Threads that write and merge files, of an instance."
    ),
    "open_files": _count("files.open", _DEFAULT.open_files, "Files kept open at most; -1 for all.", -1),
    "write_batch_bytes": _bytes("write-batch-size", _DEFAULT.write_batch_bytes, "Bytes written in one go."),
    "memory_per_slot_bytes": _bytes(
        "memory.fixed-per-slot", 0, "Memory for blocks and write buffers of all instances in a slot.", MEBIBYTE
    ),
    "local_directories": LOCAL_DIRECTORIES,
    "transfer_threads": TRANSFER_THREADS,
    "options_factory": OPTIONS_FACTORY,
    "cache_bytes": ConfigOption[int](
        "tamias.state.rocksdb.cache-size",
        parse_memory_bytes,
        _DEFAULT.cache_bytes,
        (),
        "bytes",
        "Memory for entries in use, in front of all instances in a slot.",
        _at_least(1 << 16),
    ),
}

_CONDITIONS = (
    _only(
        "timer-service.factory",
        "HEAP",
        "timers are kept on the heap, beside RocksDB, and are part of its checkpoints: HEAP is what there is",
    ),
    _only(
        "memory.managed",
        "false",
        f"there is no managed memory to share; set {PREFIX}memory.fixed-per-slot to bound what RocksDB takes",
    ),
    _only(
        "bloom-filter.block-based-mode",
        "false",
        "RocksDB no longer has filters per block",
    ),
    _only(
        "memory.partitioned-index-filters",
        "true",
        "indexes and filters are always partitioned: whole ones of a large state do not fit into a bounded cache",
    ),
)
