"""Options of memory: Flink's, which bound the process of each slot here.

Flink's TaskManager is a process with some slots, among which its memory is divided equally. Here each slot is a process
of its own, and gets the share that Flink would give it (`ekorn.config.settings.memory_settings`).
"""

from __future__ import annotations

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, within
from ekorn.config.value_text import parse_float, parse_int, parse_memory_bytes

_MEMORY = "taskmanager.memory."
_MEBIBYTE = 1 << 20


def _size(key: str, sentence: str, *old_keys: str) -> ConfigOption[int | None]:
    return ConfigOption[int | None](_MEMORY + key, parse_memory_bytes, None, old_keys, "bytes", sentence, at_least(0))


def _part(key: str, default: int, sentence: str, *old_keys: str) -> ConfigOption[int]:
    return ConfigOption(_MEMORY + key, parse_memory_bytes, default, old_keys, "bytes", sentence, at_least(0))


def _fraction(key: str, default: float, sentence: str, *old_keys: str) -> ConfigOption[float]:
    return ConfigOption(_MEMORY + key, parse_float, default, old_keys, "", sentence, within(0, 0.99))


TASK_SLOTS = ConfigOption[int | None](
    "taskmanager.numberOfTaskSlots",
    parse_int,
    None,
    sentence="The number of slots that share the memory of `taskmanager.memory.*` equally; 1 by default. Of the "
    "service: the number of slots that all of its jobs share, by default the number of cores of the machine.",
    check=at_least(1),
)
MEMORY_PROCESS_SIZE = _size(
    "process.size",
    "The memory of the processes of `taskmanager.numberOfTaskSlots` slots. A slot that exceeds its share fails. Of "
    "the service: also the memory that all slots may claim (`ekorn run -d --slot-memory`). By default, there is no "
    "limit.",
)
MEMORY_FLINK_SIZE = _size(
    "flink.size",
    "As `process.size`, without `jvm-metaspace` and `jvm-overhead`, which are added to it.",
    "taskmanager.heap.size",
)
MEMORY_TASK_HEAP = _size(
    "task.heap.size",
    "The memory for functions and for state on the heap. Together with `managed.size`, it takes the place of a total.",
)
MEMORY_TASK_OFF_HEAP = _part("task.off-heap.size", 0, "Additional memory for functions.")
MEMORY_MANAGED_SIZE = _size(
    "managed.size", "The memory for RocksDB: its block cache and write buffers.", "taskmanager.memory.size"
)
MEMORY_MANAGED_FRACTION = _fraction(
    "managed.fraction",
    0.4,
    "The memory for RocksDB as a fraction of the total, if `managed.size` is not set.",
    "taskmanager.memory.fraction",
)
MEMORY_FRAMEWORK_HEAP = _part("framework.heap.size", 128 * _MEBIBYTE, "The memory for the framework itself.")
MEMORY_FRAMEWORK_OFF_HEAP = _part(
    "framework.off-heap.size", 128 * _MEBIBYTE, "Additional memory for the framework itself."
)
MEMORY_NETWORK_FRACTION = _fraction(
    "network.fraction",
    0.1,
    "The memory for exchanges as a fraction of the total, between `network.min` and `network.max`.",
    "taskmanager.network.memory.fraction",
)
MEMORY_NETWORK_MIN = _part(
    "network.min", 64 * _MEBIBYTE, "The minimum memory for exchanges.", "taskmanager.network.memory.min"
)
MEMORY_NETWORK_MAX = _size(
    "network.max", "The maximum memory for exchanges. By default, there is no limit.", "taskmanager.network.memory.max"
)
MEMORY_METASPACE = _part("jvm-metaspace.size", 256 * _MEBIBYTE, "A part of `process.size` that Flink's JVM needs.")
MEMORY_OVERHEAD_FRACTION = _fraction(
    "jvm-overhead.fraction",
    0.1,
    "A part of `process.size` that Flink's JVM needs, between `jvm-overhead.min` and `jvm-overhead.max`.",
)
MEMORY_OVERHEAD_MIN = _part("jvm-overhead.min", 192 * _MEBIBYTE, "The smallest size of that part.")
MEMORY_OVERHEAD_MAX = _part("jvm-overhead.max", 1024 * _MEBIBYTE, "The largest size of that part.")
MEMORY_WARNING_FRACTION = ConfigOption(
    "ekorn.slot.memory.warning-fraction",
    parse_float,
    0.8,
    sentence="The fraction of its memory at which a slot warns, with the names and sizes of its largest states.",
    check=within(0.1, 1.0),
)
