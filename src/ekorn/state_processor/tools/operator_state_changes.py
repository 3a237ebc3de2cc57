"""The differences between two savepoints in operator state: list, union, broadcast and raw state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, cast

from ekorn.state.operator_state_files import redistribute
from ekorn.state.raw_state import decode_key_group
from ekorn.state.snapshots import RAW_KEYED, StateInfo
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.tools.savepoint_inspection import value_text

__all__ = ["ChangedElement", "operator_state_differences"]


class ChangedElement(NamedTuple):
    """An element of operator state that two savepoints do not share.

    Attributes:
        state: The description of the state.
        change: `added`, `removed` or `changed`.
        text: The element; with its key if it is one of broadcast state, and its key group if it is raw keyed state.
    """

    state: StateInfo
    change: str
    text: str


def operator_state_differences(one: StoredOperator, other: StoredOperator) -> Iterator[ChangedElement]:
    """Yield the elements of operator state that were added, removed or changed.

    Lists are compared without the order of their elements and without their subtasks: both change where a job is
    rescaled. Broadcast state is compared by key, and raw keyed state by key group.
    """
    infos = {info.name: info for stored in (one, other) for info in stored.metadata.states if info.of_subtask}
    for info in infos.values():
        if info.kind in ("broadcast", RAW_KEYED):
            yield from _changed_values(info, _by_key(one, info), _by_key(other, info))
        else:
            before, after = _elements(one, info), _elements(other, info)
            for change, elements in (("removed", before - after), ("added", after - before)):
                for element in elements.elements():
                    yield ChangedElement(info, change, value_text(info, element))


def _changed_values(info: StateInfo, before: dict[str, bytes], after: dict[str, bytes]) -> Iterator[ChangedElement]:
    for key in dict.fromkeys((*before, *after)):
        was, now = (None if key not in side else value_text(info, side[key]) for side in (before, after))
        if now is None:
            yield ChangedElement(info, "removed", f"{key}: {was}")
        elif was is None:
            yield ChangedElement(info, "added", f"{key}: {now}")
        elif before[key] != after[key]:
            yield ChangedElement(info, "changed", f"{key}: {was} -> {now}")


def _by_key(stored: StoredOperator, info: StateInfo) -> dict[str, bytes]:
    if info.kind == RAW_KEYED:
        groups = [decode_key_group(element) for element in _elements(stored, info)]
        return {f"key group {group}": content for group, content in sorted(groups)}
    _, entries = redistribute(stored.operator_states(), 1, 0).get(info.name, ("broadcast", []))
    of_key = cast("list[tuple[bytes, bytes]]", entries)
    return {value_text(info, key, of_map_key=True): bytes(value) for key, value in of_key}


def _elements(stored: StoredOperator, info: StateInfo) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for states in stored.operator_states():
        if states and info.name in states:
            found.update(bytes(element) for element in cast("list[bytes]", states[info.name][1]))
    return found
