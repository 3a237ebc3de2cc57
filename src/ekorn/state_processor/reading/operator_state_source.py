"""Reads the operator state of an operator: list, union and broadcast state."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal, cast

from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor
from ekorn.state.operator_state import OperatorStates
from ekorn.state.operator_state_files import OperatorState, redistribute
from ekorn.state.raw_state import KeyGroupBytes, decode_key_group
from ekorn.state.snapshots import RAW_KEYED, StateInfo
from ekorn.state_processor.reading.part_source import PartSource
from ekorn.state_processor.reading.stored_savepoint import StoredOperator

__all__ = ["OperatorStateSource", "RawStateSource"]

ReadAs = Literal["list", "union", "broadcast"]


class OperatorStateSource(PartSource):
    """The elements of a list, or the entries of a broadcast map as pairs.

    A list is read as its subtasks stored it. Union and broadcast state are read once, as one subtask would restore
    them.
    """

    def __init__(
        self, stored: StoredOperator, descriptor: ListStateDescriptor | MapStateDescriptor, read_as: ReadAs
    ) -> None:
        self._stored = stored
        self._descriptor = descriptor
        self._read_as = read_as

    def part_count(self) -> int:
        """Return the number of subtasks for a list, else 1."""
        return self._stored.metadata.parallelism if self._read_as == "list" else 1

    def read_part(self, part: int, subtask_index: int) -> Generator[Any, None, None]:
        """Yield the elements of one part."""
        stored = self._stored
        elements: OperatorState = (
            (stored.operator_state(part) or {})
            if self._read_as == "list"
            else redistribute(stored.operator_states(), 1, 0)
        )
        states = OperatorStates(elements, stored.metadata.states, stored.label)
        match self._descriptor:
            case MapStateDescriptor() as descriptor:
                yield from states.get_broadcast_state(descriptor).items()
            case descriptor if self._read_as == "union":
                yield from states.get_union_list_state(descriptor).get()
            case descriptor:
                yield from states.get_list_state(descriptor).get()

    def __repr__(self) -> str:
        return f"OperatorStateSource({self._descriptor.name!r} of {self._stored.label})"


class RawStateSource(PartSource):
    """The raw state of an operator: the bytes of each partition, or each key group with its bytes."""

    def __init__(self, stored: StoredOperator, info: StateInfo) -> None:
        self._stored = stored
        self._info = info

    def part_count(self) -> int:
        """Return the number of subtasks."""
        return self._stored.metadata.parallelism

    def read_part(self, part: int, subtask_index: int) -> Generator[bytes | KeyGroupBytes, None, None]:
        """Yield the raw state that one subtask stored."""
        states = self._stored.operator_state(part) or {}
        elements = cast("list[bytes]", states[self._info.name][1]) if self._info.name in states else []
        for element in elements:
            yield decode_key_group(element) if self._info.kind == RAW_KEYED else bytes(element)

    def __repr__(self) -> str:
        return f"RawStateSource({self._info.name!r} of {self._stored.label})"
