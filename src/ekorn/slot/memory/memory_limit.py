"""Decides what a slot does about the memory that it uses. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ekorn.config.settings.memory_settings import SlotMemory
from ekorn.config.value_text import size_text
from ekorn.slot_protocol.diagnostics import StateSize

__all__ = ["Due", "MemoryLimit", "memory_text"]

_AGAIN = 0.9  # the slot warns again after its memory has fallen below this fraction of the soft limit
_STATES = 3  # how many states a message names


class Due(Enum):
    """What is due."""

    WARN = "warn"
    FAIL = "fail"


class MemoryLimit:
    """The two limits of a slot: a soft one at which it warns, and a hard one at which it fails.

    Args:
        memory: What the slot may use.

    Example:
        >>> from ekorn.config.settings.memory_settings import MemoryParts
        >>> limit = MemoryLimit(SlotMemory(MemoryParts(task_heap=100 << 20)))
        >>> limit.due(79 << 20), limit.due(81 << 20), limit.due(82 << 20), limit.due(101 << 20)
        (None, <Due.WARN: 'warn'>, <Due.WARN: 'warn'>, <Due.FAIL: 'fail'>)
        >>> limit.warned = True
        >>> limit.due(82 << 20)

    Attributes:
        warned: Whether the slot has warned, and its use of memory has not fallen since. Who warns sets it.
    """

    def __init__(self, memory: SlotMemory) -> None:
        self.memory = memory
        self._hard_bytes = memory.process_bytes
        self._soft_bytes = int((self._hard_bytes or 0) * memory.warning_fraction)
        self.warned = False

    def due(self, resident_bytes: int) -> Due | None:
        """Return what is due at this use of memory: a warning until the slot has warned, and after a fall again."""
        if self._hard_bytes is None:
            return None
        if resident_bytes >= self._hard_bytes:
            return Due.FAIL
        if resident_bytes < self._soft_bytes * _AGAIN:
            self.warned = False
        if resident_bytes < self._soft_bytes or self.warned:
            return None
        return Due.WARN


def memory_text(memory: SlotMemory, resident_bytes: int, rocksdb_bytes: int | None, states: Sequence[StateSize]) -> str:
    """Return what uses the memory of a slot, and what to do about it."""
    limit = size_text(memory.process_bytes or 0)
    of_states = sum(state.size_bytes for state in states)
    parts = [f"about {size_text(of_states)} is state on the heap"] if states else ["no state is on the heap"]
    if rocksdb_bytes is not None:
        parts.append(f"{size_text(rocksdb_bytes)} is RocksDB's")
    rest = max(resident_bytes - of_states - (rocksdb_bytes or 0), 0)
    parts.append(f"the rest, about {size_text(rest)}, is Python, the objects of functions and records in flight")
    largest = ", ".join(
        f"{state.name!r} of operator {state.operator_name!r} (about {size_text(state.size_bytes)} in "
        f"{state.entries:,} entries)"
        for state in states[:_STATES]
    )
    named = f"; largest states: {largest}" if largest else ""
    return (
        f"it uses {size_text(resident_bytes)} of the {limit} that it may use: {', '.join(parts)}{named}; raise "
        f"{memory.raised_by}, use more slots, or keep state in RocksDB (state.backend.type: rocksdb)"
    )
