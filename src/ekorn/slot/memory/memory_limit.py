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


def memory_text(memory: SlotMemory, resident_bytes: int, rocksdb_bytes: int | None, kept: Sequence[StateSize]) -> str:
    """Return what uses the memory of a slot, and what to do about it.

    Args:
        memory: What the slot may use.
        resident_bytes: What it uses.
        rocksdb_bytes: RocksDB's part of it; None if no operator keeps state in RocksDB.
        kept: The states on the heap and the objects that functions keep, the largest first.
    """
    states, objects = [each for each in kept if each.is_state], [each for each in kept if not each.is_state]
    of_states, of_objects = (sum(each.size_bytes for each in some) for some in (states, objects))
    parts = [f"about {size_text(of_states)} is state on the heap"] if states else ["no state is on the heap"]
    if rocksdb_bytes is not None:
        parts.append(f"{size_text(rocksdb_bytes)} is RocksDB's")
    if objects:
        parts.append(f"about {size_text(of_objects)} is objects that functions keep outside of state")
    rest = size_text(max(resident_bytes - of_states - of_objects - (rocksdb_bytes or 0), 0))
    small = "records in flight" if objects else "the objects of functions and records in flight"
    parts.append(f"the rest, about {rest}, is Python{' and ' if objects else ', '}{small}")
    return (
        f"it uses {size_text(resident_bytes)} of the {size_text(memory.process_bytes or 0)} that it may use: "
        f"{', '.join(parts)}{_largest('states', states)}{_largest('objects', objects)}; "
        f"{_advice(memory.raised_by, of_states, of_objects, in_rocksdb=rocksdb_bytes is not None)}"
    )


def _largest(what: str, kept: Sequence[StateSize]) -> str:
    named = ", ".join(
        f"{each.name!r} of operator {each.operator_name!r} (about {size_text(each.size_bytes)} in "
        f"{each.entries:,} {'entry' if each.entries == 1 else 'entries'})"
        for each in kept[:_STATES]
    )
    return f"; largest {what}: {named}" if named else ""


def _advice(raised_by: str, of_states: int, of_objects: int, *, in_rocksdb: bool) -> str:
    if of_objects > of_states:
        return f"raise {raised_by}, or keep less in functions: what is not in state is in no checkpoint either"
    if not of_states or in_rocksdb:
        return f"raise {raised_by} or use more slots"
    return f"raise {raised_by}, use more slots, or keep state in RocksDB (state.backend.type: rocksdb)"
