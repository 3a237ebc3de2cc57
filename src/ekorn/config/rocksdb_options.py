"""Flink's option keys for RocksDB, and how a configuration becomes a `RocksDBSettings`.

A key below `state.backend.rocksdb.` that is not declared here is refused, and so is a value that ekorn cannot
honour. No setting is ignored silently.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ekorn.config.configuration import Configuration
from ekorn.config.option import ConfigOption
from ekorn.config.settings.rocksdb_settings import (
    COMPRESSIONS,
    COUNTERS,
    MEBIBYTE,
    NATIVE_METRICS,
    PREDEFINED,
    RocksDBSettings,
)
from ekorn.config.value_text import parse_bool, parse_choice, parse_int, parse_list, parse_memory_bytes
from ekorn.errors import ConfigurationError

PREFIX = "state.backend.rocksdb."


def rocksdb_settings(configuration: Configuration) -> RocksDBSettings:
    """Read the settings of RocksDB from a configuration.

    Raises:
        ConfigurationError: A key is not known, or a value cannot be honoured.
    """
    _refuse_unknown(configuration)
    for option in _CONDITIONS:
        option.read(configuration)
    settings = replace(RocksDBSettings(), **PREDEFINED[PREDEFINED_OPTIONS.read(configuration)])
    given = {field: option.read(configuration) for field, option in _FIELDS.items() if option.find(configuration)}
    if not USE_BLOOM_FILTER.read(configuration):
        given["bloom_bits_per_key"] = 0
    given["native_metrics"] = tuple(name for name, option in NATIVE.items() if option.read(configuration))
    given["counters"] = tuple(name for name, option in COUNTED.items() if option.read(configuration))
    return replace(settings, **given)


def require_rocksdict() -> None:
    """Check that the package `rocksdict` is installed.

    Raises:
        ConfigurationError: It is not. The message says what to install.
    """
    if importlib.util.find_spec("rocksdict") is None:
        raise ConfigurationError(
            "state is, or was saved, in RocksDB, for which the package 'rocksdict' is needed and not installed: "
            "pip install 'ekorn[rocksdb]', here and wherever the slots run"
        )


def declared_keys() -> set[str]:
    """Return every key that is declared here."""
    found = (*_FIELDS.values(), *_CONDITIONS, *NATIVE.values(), *COUNTED.values(), PREDEFINED_OPTIONS, USE_BLOOM_FILTER)
    return {option.key for option in found}


def _refuse_unknown(configuration: Configuration) -> None:
    known = declared_keys()
    for key in sorted(configuration.to_dict()):
        if key.startswith(PREFIX) and key not in known:
            name = key.removeprefix(f"{PREFIX}metrics.")
            if name in _NOT_HAD:
                raise ConfigurationError(f"{key!r} is refused: {_NOT_HAD[name]}")
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "docs/state_backends.md lists the keys that have an effect"
            raise ConfigurationError(f"{key!r} has no effect here and is therefore refused: {hint}")


# ------------------------------------------------------------------------------------------------------------- the keys


def _at_least(least: int) -> Callable[[Any], str | None]:
    return lambda value: None if value >= least else f"must be at least {least}"


def _bytes(key: str, default: int, sentence: str, least: int = 1) -> ConfigOption[Any]:
    return ConfigOption(PREFIX + key, parse_memory_bytes, default, (), "bytes", sentence, _at_least(least))


def _count(key: str, default: int, sentence: str, least: int = 1) -> ConfigOption[Any]:
    return ConfigOption(PREFIX + key, parse_int, default, (), "", sentence, _at_least(least))


def _only(key: str, allowed: str, why: str) -> ConfigOption[str]:
    """Declare a key that accepts only the value that holds anyway; `why` says so when another value is given."""

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
    sentence="A predefined set of settings; single keys override it.",
)
USE_BLOOM_FILTER = ConfigOption[bool](
    PREFIX + "use-bloom-filter",
    parse_bool,
    True,  # Flink: false
    sentence="Whether files have Bloom filters, which tell that a key is not in the file.",
)
LOCAL_DIRECTORIES = ConfigOption[tuple[str, ...]](
    PREFIX + "localdir", _folders, (), sentence="Folders for working state on the slots' machines."
)
TRANSFER_THREADS = _count(
    "checkpoint.transfer.thread.num", _DEFAULT.transfer_threads, "How many files a subtask copies at the same time."
)
OPTIONS_FACTORY = ConfigOption[str | None](
    PREFIX + "options-factory",
    str,
    None,
    sentence="A Python class, by its import path, whose create_db_options(options) may change rocksdict.Options.",
)

_NOT_HAD = {"column-family-as-variable": "all states of an operator share one column family, 'default'"}
NATIVE: dict[str, ConfigOption[bool]] = {
    name: ConfigOption[bool](
        f"{PREFIX}metrics.{name}", parse_bool, False, sentence=f"Whether RocksDB's property `{name}` is a metric."
    )
    for name in NATIVE_METRICS
}
COUNTED: dict[str, ConfigOption[bool]] = {
    name: ConfigOption[bool](
        f"{PREFIX}metrics.{name}",
        parse_bool,
        False,
        sentence=f"Whether RocksDB's counter `{name}` is a metric. Counting makes every access to RocksDB slower.",
    )
    for name in COUNTERS
}

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
    "write_buffer_count": _count(
        "writebuffer.count", _DEFAULT.write_buffer_count, "The largest number of write buffers.", 2
    ),
    "write_buffers_to_merge": _count(
        "writebuffer.number-to-merge",
        _DEFAULT.write_buffers_to_merge,
        "How many write buffers are merged into one file.",
    ),
    "block_cache_bytes": _bytes(
        "block.cache-size", _DEFAULT.block_cache_bytes, "Memory for blocks of files, of all instances in a slot.", 65536
    ),
    "block_bytes": _bytes("block.blocksize", _DEFAULT.block_bytes, "The unit that is read and cached.", 1024),
    "metadata_block_bytes": _bytes(
        "block.metadata-blocksize",
        _DEFAULT.metadata_block_bytes,
        "The unit of indexes and filters that is read and cached.",
        1024,
    ),
    "bloom_bits_per_key": _count(
        "bloom-filter.bits-per-key", _DEFAULT.bloom_bits_per_key, "Bits per key in Bloom filters."
    ),
    "target_file_bytes": _bytes(
        "compaction.level.target-file-size-base", _DEFAULT.target_file_bytes, "The size that files grow to.", 1024
    ),
    "level_base_bytes": _bytes(
        "compaction.level.max-size-level-base",
        _DEFAULT.level_base_bytes,
        "The size that the first level grows to.",
        1024,
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
        "thread.num", _DEFAULT.background_threads, "Threads of an instance that write and merge files."
    ),
    "open_files": _count("files.open", _DEFAULT.open_files, "The largest number of open files; -1 for no limit.", -1),
    "write_batch_bytes": _bytes("write-batch-size", _DEFAULT.write_batch_bytes, "Bytes written in one batch."),
    "memory_per_slot_bytes": _bytes(
        "memory.fixed-per-slot", 0, "Memory for blocks and write buffers of all instances in a slot.", MEBIBYTE
    ),
    "local_directories": LOCAL_DIRECTORIES,
    "transfer_threads": TRANSFER_THREADS,
    "options_factory": OPTIONS_FACTORY,
    "cache_bytes": ConfigOption[int](
        "ekorn.state.rocksdb.cache-size",
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
