"""Looks into savepoints: what they hold, the state of a key, and the differences between two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from ekorn.errors import StateError
from ekorn.keygroups import KeyGroupRange, state_key
from ekorn.state.declared import Described
from ekorn.state.entry_shapes import itself
from ekorn.state.keyed_backend import RestoredTables
from ekorn.state.kinds import KINDS, bare_kind
from ekorn.state.operator_state import KINDS_OF_MODES
from ekorn.state.operator_state_files import Mode, redistribute
from ekorn.state.raw_state import decode_key_group
from ekorn.state.snapshots import RAW_KEYED, RAW_OPERATOR, StateInfo
from ekorn.state_processor.reading.entries import (
    EntryAddress,
    Values,
    address_of,
    compared_pieces,
    pieces_of,
    pieces_with,
)
from ekorn.state_processor.reading.stored_savepoint import StoredOperator, StoredSavepoint
from ekorn.state_processor.stand_ins import load_value

__all__ = [
    "ChangedElement",
    "Difference",
    "FoundEntry",
    "StateSummary",
    "compared_ranges",
    "differences",
    "differences_in",
    "find_key",
    "operator_state_differences",
    "operators_in_both",
    "some_key",
    "summaries",
    "value_text",
]


class StateSummary(NamedTuple):
    """One state of an operator: how many entries it has, and some of them as text."""

    info: StateInfo
    entries: int
    sample: tuple[str, ...]


def summaries(stored: StoredOperator, sample: int = 0) -> list[StateSummary]:
    """Count the entries of each state of an operator, and show the first ones."""
    counts: Counter[StateInfo] = Counter()
    samples: dict[StateInfo, list[str]] = {info: [] for info in stored.metadata.states}
    listed = {info.name: info for info in stored.keyed_states}
    for part in stored.parts():
        for tables in pieces_of(stored, part):
            for name, (found, entries) in tables.items():
                info = listed.get(name, found)
                shown = samples.setdefault(info, [])
                counts[info] += len(entries)
                values = Values(info)
                for at, kept in entries.items():
                    if len(shown) >= sample:
                        break
                    shown.append(_entry_text(info, address_of(info, at), values.load(kept)))
    of_subtask = {info.name: info for info in stored.metadata.states if info.of_subtask}
    for states in stored.operator_states():
        for name, (mode, elements) in (states or {}).items():
            info = of_subtask.get(name) or StateInfo(name, KINDS_OF_MODES[mode])  # as a job restores it
            counts[info] += len(elements)
            shown = samples.setdefault(info, [])
            texts = [_element_text(info, mode, each) for each in elements[: max(0, sample - len(shown))]]
            shown += texts
    return [StateSummary(info, counts[info], tuple(shown)) for info, shown in samples.items()]


def _entry_text(info: StateInfo, address: EntryAddress, value: Any) -> str:
    if info.kind == "timers":
        return f"{address.key!r} at {address.namespace!r}"
    window = "" if address.namespace is None else f" in {address.namespace!r}"
    return f"{address.key!r}{window}: {value!r}"


def _element_text(info: StateInfo, mode: Mode, element: Any) -> str:
    if info.kind == RAW_KEYED:
        group, content = decode_key_group(element)
        return f"key group {group}: {content!r}"
    if mode == "broadcast":
        return f"{value_text(info, element[0], of_map_key=True)}: {value_text(info, element[1])}"
    return value_text(info, element)


def value_text(info: StateInfo, data: bytes, *, of_map_key: bool = False) -> str:
    """Return an element of operator state as text, or the key or value of an entry of broadcast state."""
    described = Described.decode(info.schema, info.name)
    schema = described.map_key if of_map_key else described.value
    # The serializer belongs to the program, so only the job can read its bytes.
    of_serializer = isinstance(schema, dict) and "serializer" in schema
    as_bytes = of_serializer or info.kind in (RAW_OPERATOR, RAW_KEYED)
    return repr(bytes(data)) if as_bytes else repr(load_value(data))


# -------------------------------------------------------------------------------------------------------------- a key


class FoundEntry(NamedTuple):
    """One entry of a key: its state, its window or time if any, its value and the time of its last access."""

    info: StateInfo
    namespace: Any
    value: Any
    stamps: Any


def find_key(stored: StoredOperator, key: Any) -> list[FoundEntry]:
    """Return all entries of a key, those of windows and timers included. Only the files with its key group are read."""
    wanted = state_key(key)
    found: list[FoundEntry] = []
    for info, entries in (table for tables in pieces_with(stored, key) for table in tables.values()):
        values = Values(info)
        if not info.namespaced:
            if wanted in entries:
                kept = entries[wanted]
                found.append(FoundEntry(info, None, values.load(kept), values.stamps(kept)))
            continue
        for at, kept in entries.items():
            if at[0] == wanted:
                stamps = None if info.kind == "timers" else values.stamps(kept)
                found.append(FoundEntry(info, at[1], values.load(kept), stamps))
    return found


def some_key(stored: StoredOperator) -> Any:
    """Return any key of an operator, as an example of its keys; None if it has none."""
    for part in stored.parts():
        for tables in pieces_of(stored, part):
            for info, entries in tables.values():
                for at in entries:
                    return address_of(info, at).key
    return None


# ------------------------------------------------------------------------------------------ differences in keyed state


class Difference(NamedTuple):
    """An entry that differs between two savepoints. `before` or `after` is None where the entry does not exist.

    Attributes:
        state: The description of the state.
        address: The key, and the window or the time of a timer.
        change: `added`, `removed` or `changed`.
        before: The value in the first savepoint.
        after: The value in the second one.
    """

    state: StateInfo
    address: EntryAddress
    change: str
    before: Any
    after: Any


def differences(one: StoredOperator, other: StoredOperator) -> Iterator[Difference]:
    """Yield the entries of keyed state that were added, removed or changed. The time of the last access is no change.

    Raises:
        StateError: The two have different numbers of key groups.
    """
    for key_groups in compared_ranges(one, other):
        yield from differences_in(one, other, key_groups)


def compared_ranges(one: StoredOperator, other: StoredOperator) -> list[KeyGroupRange]:
    """Return the ranges of key groups in which two operators are compared, one after another or in parallel.

    Raises:
        StateError: The two have different numbers of key groups.
    """
    if one.metadata.max_parallelism != other.metadata.max_parallelism:
        raise StateError(
            f"operator {one.label} has {one.metadata.max_parallelism} key groups in one savepoint and "
            f"{other.metadata.max_parallelism} in the other; their keys cannot be compared part by part"
        )
    ranges = sorted(part.key_groups for part in one.parts())
    # Whole files are compared, so the key group of a key is not needed: the class of the key may be missing.
    return ranges if ranges == sorted(part.key_groups for part in other.parts()) else [one.all_key_groups]


def differences_in(one: StoredOperator, other: StoredOperator, key_groups: KeyGroupRange) -> Iterator[Difference]:
    """Yield the differences in a range of key groups. A piece of both savepoints at a time is in memory."""
    for piece in compared_pieces(one, other, key_groups):
        yield from _differences(piece.before, piece.after)


def _differences(before: RestoredTables, after: RestoredTables) -> Iterator[Difference]:
    for name in dict.fromkeys((*before, *after)):
        info = (after.get(name) or before[name]).info
        old = before[name].entries if name in before else {}
        new = after[name].entries if name in after else {}
        load_old = Values(before[name].info).load if name in before else None
        load_new = Values(after[name].info).load if name in after else None
        value_of = KINDS[bare_kind(info.kind)].shape.without_stamps if info.ttl else itself
        for at in dict.fromkeys((*old, *new)):
            if at not in new and load_old is not None:
                yield Difference(info, address_of(info, at), "removed", load_old(old[at]), None)
            elif at not in old and load_new is not None:
                yield Difference(info, address_of(info, at), "added", None, load_new(new[at]))
            elif value_of(old[at]) != value_of(new[at]):
                assert load_old is not None and load_new is not None
                yield Difference(info, address_of(info, at), "changed", load_old(old[at]), load_new(new[at]))


def operators_in_both(one: StoredSavepoint, other: StoredSavepoint) -> list[tuple[StoredOperator, StoredOperator]]:
    """Return the operators that both savepoints have."""
    return [
        (stored, other.operator_by_id(stored.metadata.operator_id))
        for stored in one.operators()
        if other.metadata.operator(stored.metadata.operator_id) is not None
    ]


# ---------------------------------------------------------------------------------------- differences in operator state


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
