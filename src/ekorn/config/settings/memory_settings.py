"""The memory that each slot of a job may use, calculated from Flink's options as Flink does it.

Flink's TaskManager has a total size, from which parts are derived, or two parts, from which the total is derived. Its
slots share that equally. `docs/operations.md` says what the parts mean in a slot, which is a Python process.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, NoReturn

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.option import ConfigOption
from ekorn.config.options import memory as memory_options
from ekorn.config.settings.fields import filled_by
from ekorn.config.value_text import size_text
from ekorn.errors import ConfigurationError

__all__ = ["LEAST_SLOT_BYTES", "JobMemory", "MemoryParts", "SlotMemory", "SlotResources", "job_memory"]

LEAST_SLOT_BYTES = 96 << 20  # a slot that has done nothing yet uses some 60 MB


@dataclass(frozen=True)
class MemoryParts:
    """The memory of a TaskManager, or of one slot, by Flink's parts."""

    framework_heap: int = 0
    task_heap: int = 0
    framework_off_heap: int = 0
    task_off_heap: int = 0
    network: int = 0
    managed: int = 0
    metaspace: int = 0
    overhead: int = 0

    @property
    def total_flink(self) -> int:
        """The size without what a JVM needs."""
        return self.total_process - self.metaspace - self.overhead

    @property
    def total_process(self) -> int:
        """The size of the process."""
        return sum(getattr(self, each.name) for each in fields(self))

    def share(self, slots: int) -> MemoryParts:
        """Return the part of one of some slots."""
        return MemoryParts(*(getattr(self, each.name) // slots for each in fields(self)))


@dataclass(frozen=True)
class SlotMemory:
    """What one slot may use.

    Attributes:
        parts: The parts of its memory; None if it is not bounded.
        managed_bytes: The memory for RocksDB; None or 0 leaves RocksDB its own sizes.
        warning_fraction: The fraction of the memory at which the slot warns.
        cpu_cores: The cores that its slot-sharing group names.
        raised_by: What to raise if it is too small.
    """

    parts: MemoryParts | None = None
    managed_bytes: int | None = None
    warning_fraction: float = filled_by(options.MEMORY_WARNING_FRACTION)
    cpu_cores: float | None = None
    raised_by: str = options.MEMORY_PROCESS_SIZE.key

    @property
    def process_bytes(self) -> int | None:
        """The memory at which the slot fails; None if it is not bounded."""
        return None if self.parts is None else self.parts.total_process


@dataclass(frozen=True)
class SlotResources:
    """The resources that a slot-sharing group names for each of its slots."""

    cpu_cores: float | None = None
    task_heap: int | None = None
    task_off_heap: int | None = None
    managed: int | None = None


@dataclass(frozen=True)
class JobMemory:
    """What the slots of a job may use: those of a slot-sharing group with resources of its own, and all others."""

    other: SlotMemory = SlotMemory()
    groups: Mapping[str, SlotMemory] = field(default_factory=dict)

    def of(self, group: str) -> SlotMemory:
        """Return what each slot of a slot-sharing group may use."""
        return self.groups.get(group, self.other)


def job_memory(configuration: Configuration, groups: Mapping[str, SlotResources]) -> JobMemory:
    """Read what the slots of a job may use.

    Args:
        configuration: The keys and values.
        groups: The resources of slot-sharing groups.

    Raises:
        ConfigurationError: The parts do not fit into the total, or a slot gets less memory than it needs to start.
    """
    given = _Given(configuration)
    warning_fraction = options.MEMORY_WARNING_FRACTION.read(configuration)
    slots = options.TASK_SLOTS.read(configuration) or 1
    total = given.parts()
    if total is None:
        managed = given.size(options.MEMORY_MANAGED_SIZE)
        other = SlotMemory(None, None if managed is None else managed // slots, warning_fraction)
    else:
        share = total.share(slots)
        _check_least(share.total_process, given.total_key, slots)
        other = SlotMemory(share, share.managed, warning_fraction, raised_by=given.total_key)
    return JobMemory(other, {name: given.of_group(name, group, other) for name, group in groups.items()})


def _check_least(process_bytes: int, key: str, slots: int = 1) -> None:
    if process_bytes < LEAST_SLOT_BYTES:
        of_each = "" if slots == 1 else f", of which each of {slots} slots gets a share"
        raise ConfigurationError(
            f"{key} leaves {size_text(process_bytes)} to a slot{of_each}; a slot needs at least "
            f"{size_text(LEAST_SLOT_BYTES)} to start"
        )


def _times(size: int, fraction: float) -> int:
    """Return a fraction of a size, with the digits of Flink, whose fractions have 32 bits."""
    (narrow,) = struct.unpack("f", struct.pack("f", fraction))
    return int(size * Decimal(repr(narrow)))


def _beside(size: int, fraction: float) -> int:
    """Return a part that is a fraction of the sum of both, when the other part has this size."""
    (narrow,) = struct.unpack("f", struct.pack("f", fraction))
    return int(size * Decimal(repr(narrow / (1 - narrow))))


class _Given:
    """The options of memory as they are set, and Flink's calculation."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        for option in vars(memory_options).values():
            if isinstance(option, ConfigOption):
                option.read(configuration)  # also those that no total makes use of are checked
        heap, managed = self.size(options.MEMORY_TASK_HEAP), self.size(options.MEMORY_MANAGED_SIZE)
        self._is_fine_grained = heap is not None and managed is not None
        keys = (options.MEMORY_PROCESS_SIZE, options.MEMORY_FLINK_SIZE, options.MEMORY_TASK_HEAP)
        set_keys = [option.find(configuration) for option in keys]
        self.total_key = next((key for key in set_keys if key is not None), options.MEMORY_PROCESS_SIZE.key)

    def size(self, option: ConfigOption[Any]) -> Any:
        """Return the value of an option."""
        return option.read(self._configuration)

    def parts(self) -> MemoryParts | None:
        """Return the memory of a TaskManager; None if nothing says how large it is."""
        process, flink = self.size(options.MEMORY_PROCESS_SIZE), self.size(options.MEMORY_FLINK_SIZE)
        if self._is_fine_grained:
            heap, managed = self.size(options.MEMORY_TASK_HEAP), self.size(options.MEMORY_MANAGED_SIZE)
            return self._around(heap, self.size(options.MEMORY_TASK_OFF_HEAP), managed, flink, process)
        if flink is not None:
            return self._with_jvm(self._within(flink), process)
        if process is not None:
            metaspace = self.size(options.MEMORY_METASPACE)
            overhead = self._overhead(_times(process, self.size(options.MEMORY_OVERHEAD_FRACTION)))
            if not self._fits_jvm(process - metaspace - overhead):
                return self._without_jvm(process)
            inner = self._within(process - metaspace - overhead)
            return replace(inner, metaspace=metaspace, overhead=overhead)
        if self.size(options.MEMORY_TASK_HEAP) is not None:
            raise ConfigurationError(
                f"{options.MEMORY_TASK_HEAP.key} is a part of the memory of a slot; set also "
                f"{options.MEMORY_MANAGED_SIZE.key} (0 for state on the heap), or one of the totals "
                f"{options.MEMORY_FLINK_SIZE.key} and {options.MEMORY_PROCESS_SIZE.key}"
            )
        return None

    def of_group(self, name: str, group: SlotResources, other: SlotMemory) -> SlotMemory:
        """Return what a slot of a group may use: a TaskManager with one slot that has these resources."""
        if group.task_heap is None:
            return replace(other, cpu_cores=group.cpu_cores)
        managed = group.managed or 0
        parts = self._around(group.task_heap, group.task_off_heap or 0, managed, None, None)
        raised_by = f"the memory of the slot-sharing group {name!r}"
        _check_least(parts.total_process, raised_by)
        return SlotMemory(parts, managed, other.warning_fraction, group.cpu_cores, raised_by)

    # ------------------------------------------------------------------------------------------ Flink's calculation

    def _framework(self) -> MemoryParts:
        return MemoryParts(
            framework_heap=self.size(options.MEMORY_FRAMEWORK_HEAP),
            framework_off_heap=self.size(options.MEMORY_FRAMEWORK_OFF_HEAP),
        )

    def _within(self, flink: int) -> MemoryParts:
        """Return the parts of a total size without what a JVM needs."""
        heap, managed = self.size(options.MEMORY_TASK_HEAP), self.size(options.MEMORY_MANAGED_SIZE)
        parts = replace(
            self._framework(),
            task_off_heap=self.size(options.MEMORY_TASK_OFF_HEAP),
            managed=_times(flink, self.size(options.MEMORY_MANAGED_FRACTION)) if managed is None else managed,
        )
        if heap is None:
            network = self._network(_times(flink, self.size(options.MEMORY_NETWORK_FRACTION)))
            parts = replace(parts, network=network)
            rest = flink - parts.total_process
            if rest < 0:
                self._refuse(parts, flink)
            return replace(parts, task_heap=rest)
        parts = replace(parts, task_heap=heap)
        rest = flink - parts.total_process
        if rest < 0:
            self._refuse(parts, flink)
        return replace(parts, network=rest)

    def _around(self, heap: int, off_heap: int, managed: int, flink: int | None, process: int | None) -> MemoryParts:
        """Return the memory whose parts for tasks and for RocksDB are given."""
        parts = replace(self._framework(), task_heap=heap, task_off_heap=off_heap, managed=managed)
        if flink is None:
            beside = _beside(parts.total_process, self.size(options.MEMORY_NETWORK_FRACTION))
            parts = replace(parts, network=self._network(beside))
        elif parts.total_process > flink:
            self._refuse(parts, flink)
        else:
            parts = replace(parts, network=flink - parts.total_process)
        return self._with_jvm(parts, process)

    def _with_jvm(self, parts: MemoryParts, process: int | None) -> MemoryParts:
        parts = replace(parts, metaspace=self.size(options.MEMORY_METASPACE))
        if process is None:
            beside = _beside(parts.total_process, self.size(options.MEMORY_OVERHEAD_FRACTION))
            return replace(parts, overhead=self._overhead(beside))
        if parts.total_process > process:
            self._refuse(parts, process)
        return replace(parts, overhead=process - parts.total_process)

    def _fits_jvm(self, flink: int) -> bool:
        """Return whether a total has room for all parts, those that only a JVM needs among them."""
        network = self._network(_times(max(flink, 0), self.size(options.MEMORY_NETWORK_FRACTION)))
        managed = self.size(options.MEMORY_MANAGED_SIZE)
        if managed is None:
            managed = _times(max(flink, 0), self.size(options.MEMORY_MANAGED_FRACTION))
        given: int = (self.size(options.MEMORY_TASK_HEAP) or 0) + self.size(options.MEMORY_TASK_OFF_HEAP) + managed
        return self._framework().total_process + network + given <= flink

    def _without_jvm(self, process: int) -> MemoryParts:
        """Return the parts of a slot that is too small for the parts of a JVM, which it does not have."""
        managed = self.size(options.MEMORY_MANAGED_SIZE)
        if managed is None:
            managed = _times(process, self.size(options.MEMORY_MANAGED_FRACTION))
        off_heap = self.size(options.MEMORY_TASK_OFF_HEAP)
        parts = MemoryParts(task_off_heap=off_heap, managed=managed, task_heap=self.size(options.MEMORY_TASK_HEAP) or 0)
        if parts.total_process > process:
            self._refuse(parts, process)
        return replace(parts, task_heap=process - managed - off_heap)

    def _network(self, wanted: int) -> int:
        most: int | None = options.MEMORY_NETWORK_MAX.read(self._configuration)
        least = options.MEMORY_NETWORK_MIN.read(self._configuration)
        return max(min(wanted, wanted if most is None else most), least)

    def _overhead(self, wanted: int) -> int:
        most = options.MEMORY_OVERHEAD_MAX.read(self._configuration)
        return max(min(wanted, most), options.MEMORY_OVERHEAD_MIN.read(self._configuration))

    def _refuse(self, parts: MemoryParts, total: int) -> NoReturn:
        sizes = ", ".join(
            f"{each.name.replace('_', ' ')} {size_text(getattr(parts, each.name))}"
            for each in fields(parts)
            if getattr(parts, each.name)
        )
        raise ConfigurationError(
            f"the parts of taskmanager.memory.* need {size_text(parts.total_process)} together ({sizes}), which is "
            f"more than {self.total_key} allows, {size_text(total)}; raise it, or lower a part"
        )
