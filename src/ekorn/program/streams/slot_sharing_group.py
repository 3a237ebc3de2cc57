"""`SlotSharingGroup`: operators that may share slots, and the resources of such a slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import total_ordering

from ekorn.config.settings.memory_settings import SlotResources

_KIBI = 1 << 10


@total_ordering
class MemorySize:
    """An amount of memory.

    Example:
        >>> MemorySize.of_mebi_bytes(2).get_bytes()
        2097152
    """

    def __init__(self, bytes_size: int) -> None:
        if isinstance(bytes_size, bool) or not isinstance(bytes_size, int) or bytes_size < 0:
            raise ValueError(f"a memory size is a number of bytes of at least 0, got {bytes_size!r}")
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Return the memory size of this number of MiB."""
        return MemorySize(mebi_bytes * _KIBI**2)

    def get_bytes(self) -> int:
        """Return the amount in bytes."""
        return self._bytes

    def get_kibi_bytes(self) -> int:
        """Return the amount in KiB, rounded down."""
        return self._bytes // _KIBI

    def get_mebi_bytes(self) -> int:
        """Return the amount in MiB, rounded down."""
        return self._bytes // _KIBI**2

    def get_gibi_bytes(self) -> int:
        """Return the amount in GiB, rounded down."""
        return self._bytes // _KIBI**3

    def get_tebi_bytes(self) -> int:
        """Return the amount in TiB, rounded down."""
        return self._bytes // _KIBI**4

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemorySize) and other._bytes == self._bytes

    def __lt__(self, other: MemorySize) -> bool:
        if not isinstance(other, MemorySize):
            return NotImplemented
        return self._bytes < other._bytes

    def __hash__(self) -> int:
        return hash((MemorySize, self._bytes))

    def __repr__(self) -> str:
        for exponent, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
            if self._bytes and self._bytes % _KIBI**exponent == 0:
                return f"{self._bytes // _KIBI**exponent} {unit}"
        return f"{self._bytes} bytes"


@dataclass(frozen=True)
class SlotSharingGroup:
    """A name for operators that may share slots, and optionally the resources of each slot.

    Example:
        >>> SlotSharingGroup.builder("models").build().get_name()
        'models'
    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: Mapping[str, float] = field(default_factory=dict, hash=False)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Return a builder of a group with this name."""
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        """Return the group's name."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """Return the cores of each slot."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the heap memory of each slot."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the off-heap memory of each slot."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """Return the memory for state backends of each slot."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Return the other resources of each slot, by name."""
        return dict(self.external_resources)

    @property
    def resources_text(self) -> str:
        """Return the resources as text; '' if none are set."""
        parts = []
        if self.cpu_cores is not None:
            parts.append(f"{self.cpu_cores:g} cores")
        for amount, what in (
            (self.task_heap_memory, "heap"),
            (self.task_off_heap_memory, "off heap"),
            (self.managed_memory, "managed"),
        ):
            if amount is not None:
                parts.append(f"{amount} {what}")
        parts += [f"{amount:g} {name}" for name, amount in sorted(self.external_resources.items())]
        return ", ".join(parts)

    def resources(self) -> SlotResources:
        """Return the resources as settings of the job."""
        memory = (self.task_heap_memory, self.task_off_heap_memory, self.managed_memory)
        return SlotResources(self.cpu_cores, *(None if size is None else size.get_bytes() for size in memory))

    class Builder:
        """Builds a slot-sharing group."""

        def __init__(self, name: str) -> None:
            if not isinstance(name, str) or not name:
                raise ValueError(f"the name of a slot-sharing group must be a non-empty string, got {name!r}")
            self._name = name
            self._cpu_cores: float | None = None
            self._heap: MemorySize | None = None
            self._off_heap: MemorySize | None = None
            self._managed: MemorySize | None = None
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Set the cores of each slot, above 0."""
            if cpu_cores <= 0:
                raise ValueError(f"slot-sharing group {self._name!r} needs cores above 0, got {cpu_cores!r}")
            self._cpu_cores = float(cpu_cores)
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the heap memory of each slot, above 0."""
            if task_heap_memory.get_bytes() <= 0:
                raise ValueError(f"slot-sharing group {self._name!r} needs heap memory above 0, got {task_heap_memory}")
            self._heap = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the heap memory of each slot, in MiB."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the off-heap memory of each slot."""
            self._off_heap = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the off-heap memory of each slot, in MiB."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the memory for state backends of each slot."""
            self._managed = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the memory for state backends of each slot, in MiB."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Set another resource of each slot, such as ``gpu``."""
            if value <= 0:
                raise ValueError(f"resource {name!r} of group {self._name!r} must be above 0, got {value!r}")
            self._external[name] = float(value)
            return self

        def build(self) -> SlotSharingGroup:
            """Return the group. A group with any resources needs cores and heap memory."""
            asks = any((self._cpu_cores, self._heap, self._off_heap, self._managed, self._external))
            if asks and (self._cpu_cores is None or self._heap is None):
                raise ValueError(
                    f"slot-sharing group {self._name!r} sets resources, so it must set both CPU cores and heap memory"
                )
            return SlotSharingGroup(
                self._name, self._cpu_cores, self._heap, self._off_heap, self._managed, dict(self._external)
            )
