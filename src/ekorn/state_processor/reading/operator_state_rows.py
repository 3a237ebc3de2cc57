"""Operator state as rows: list, union, broadcast and raw state are read from a savepoint, and made from rows again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

from ekorn.errors import ConfigurationError, StateError, preview
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor
from ekorn.keygroups import MAX_PARALLELISM, KeyGroup, subtask_of
from ekorn.state.declared import Described
from ekorn.state.operator_state import OperatorStates
from ekorn.state.operator_state_files import Mode, OperatorState, redistribute
from ekorn.state.raw_state import decode_key_group, encode_key_group, is_raw, raw_info
from ekorn.state.snapshots import RAW_KEYED, RAW_OPERATOR, StateInfo
from ekorn.state_processor.columns import declared_column
from ekorn.state_processor.reading.entries import Values
from ekorn.state_processor.reading.state_rows import StateTable
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.stand_ins import load_value
from ekorn.types.data_type_info import type_info_of
from ekorn.types.data_types import DataTypes, IntegralType, RowType, VarBinaryType

__all__ = ["ElementPosition", "ElementRows", "GatheredElements", "by_subtask", "rows_of_operator_state", "states_at"]

_MODES: dict[str, Mode] = {
    "list-split": "split",
    "list-union": "union",
    "broadcast": "broadcast",
    RAW_OPERATOR: "split",
    RAW_KEYED: "union",
}
_BYTES = DataTypes.BYTES()
_PLACE = (DataTypes.INT(), DataTypes.BIGINT())


# ------------------------------------------------------------------------------------------------------------ reading


def rows_of_operator_state(stored: StoredOperator, name: str, *, stored_form: bool = False) -> StateTable:
    """Return the table of an operator state, with a row for each element.

    The columns are `subtask`, `position` and `element` for lists and raw operator state; `key` and `value` for the
    entries of broadcast state, which is read once; `key_group` and `element` for raw keyed state.

    Args:
        stored: The operator.
        name: The state.
        stored_form: Whether elements are the bytes that the savepoint holds, from which `ElementRows` makes the same
            state whatever its values are.

    Raises:
        StateError: The operator has no operator state of this name.
    """
    info = stored.state(name, of_subtask=True)
    values, described = Values(info), Described.decode(info.schema, info.name)
    one = _BYTES if stored_form else declared_column(described.value, described.classes)

    def load(element: bytes) -> Any:
        return bytes(element) if stored_form else values.load(bytearray(element))

    def load_key(key: bytes) -> Any:
        if stored_form:
            return bytes(key)
        return values.load_map_key(key) if _is_of_serializer(described.map_key) else load_value(key)

    def read_entries(part: int) -> Iterator[tuple[Any, ...]]:
        _, elements = redistribute(stored.operator_states(), 1, 0).get(name, ("broadcast", []))
        for key, value in cast("list[tuple[bytes, bytes]]", elements):
            yield load_key(key), load(value)

    def read_key_groups(part: int) -> Iterator[tuple[Any, ...]]:
        for element in _elements(stored, part, name):
            yield tuple(decode_key_group(element))

    def read_elements(part: int) -> Iterator[tuple[Any, ...]]:
        for position, element in enumerate(_elements(stored, part, name)):
            yield part, position, bytes(element) if info.kind == RAW_OPERATOR else load(element)

    parts = len(stored.metadata.subtasks)
    match info.kind:
        case "broadcast":
            key = _BYTES if stored_form else declared_column(described.map_key, described.key_classes)
            return StateTable(stored, ("key", "value"), (key, one), read_entries, 1)
        case "raw-keyed":
            return StateTable(stored, ("key_group", "element"), (DataTypes.INT(), _BYTES), read_key_groups, parts)
        case kind:
            names = ("subtask", "position", "element")
            return StateTable(stored, names, (*_PLACE, _BYTES if kind == RAW_OPERATOR else one), read_elements, parts)


def _elements(stored: StoredOperator, subtask: int, name: str) -> list[bytes]:
    states = stored.operator_state(subtask) or {}
    return cast("list[bytes]", states[name][1]) if name in states else []


def _is_of_serializer(schema: Any) -> bool:
    return isinstance(schema, dict) and "serializer" in schema


# ------------------------------------------------------------------------------------------------------------ writing


class ElementPosition(NamedTuple):
    """Where an element of a list goes.

    Without a subtask, all elements are divided. Without a position, elements keep the order in which Spark hands their
    rows to the writer: partition by partition, and row by row in each partition.
    """

    subtask: int | None
    position: int | None


class GatheredElements(NamedTuple):
    """The elements of some rows, as a savepoint holds them, and their positions."""

    elements: list[Any]  # bytes, or the bytes of the key and of the value of an entry
    positions: list[ElementPosition]
    info: StateInfo


class ElementRows:
    """Makes the elements of one operator state from rows.

    Args:
        name: The state.
        kind: Its kind, in the words of `StateInfo`.
        row_type: The columns of the rows.
        known: The description of the state in the savepoint that the new one is based on, if it has the state.
        stored_form: Whether elements are bytes as a savepoint holds them.

    Raises:
        ConfigurationError: There is no such kind of operator state, the state cannot be of this kind, or a column is
            missing, unknown or of another type.
    """

    def __init__(
        self, name: str, kind: str, row_type: RowType, known: StateInfo | None = None, *, stored_form: bool = False
    ) -> None:
        if kind not in _MODES:
            raise ConfigurationError(f"unknown kind of operator state, {kind!r}: choose from {', '.join(_MODES)}")
        if is_raw(name) is not (kind in (RAW_OPERATOR, RAW_KEYED)):
            raise ConfigurationError(
                f"operator state {name!r} cannot be of the kind {kind}: raw state, and no other, has a name such as "
                "'_raw/operator' or '_raw/keyed'"
            )
        if stored_form and known is not None and known.kind != kind:
            raise ConfigurationError(
                f"the stored form of state {name!r} is that of the kind {known.kind}, not {kind}: leave out "
                "operatorStateKind, or storedForm"
            )
        self.name = name
        self.kind = kind
        self.mode = _MODES[kind]
        self._types = dict(zip(row_type.field_names(), row_type.field_types(), strict=True))
        self._as_bytes = stored_form or kind in (RAW_OPERATOR, RAW_KEYED)
        self._known = known
        self._check_columns()
        self.gather(())  # refuses columns that no state can be declared for

    def _check_columns(self) -> None:
        content = ("key", "value") if self.mode == "broadcast" else ("element",)
        needed = ("key_group", *content) if self.kind == RAW_KEYED else content
        optional = () if self.kind in ("broadcast", RAW_KEYED) else ("subtask", "position")
        missing = [column for column in needed if column not in self._types]
        unknown = [column for column in self._types if column not in (*needed, *optional)]
        if missing or unknown:
            wrong = f"has no column {missing[0]!r}" if missing else f"has a column {unknown[0]!r}"
            may = f", and may have {' and '.join(optional)}" if optional else ""
            raise ConfigurationError(
                f"the DataFrame {wrong}: rows of {self.kind} state have {' and '.join(needed)}{may}"
            )
        for column in content if self._as_bytes else ():
            if not isinstance(self._types[column], VarBinaryType):
                raise ConfigurationError(
                    f"the column {column!r} is {self._types[column]}, and its values must be bytes"
                )
        for column in ("subtask", "position", "key_group"):
            if column in self._types and not isinstance(self._types[column], IntegralType):
                raise ConfigurationError(
                    f"the column {column!r} is {self._types[column]}, and its values must be whole numbers"
                )

    def gather(self, rows: Iterable[Mapping[str, Any]]) -> GatheredElements:
        """Return the elements of some rows.

        Raises:
            StateError: A value is null, or does not fit its state.
        """
        states, elements, positions = OperatorStates(), list[Any](), list[ElementPosition]()
        encoded = self._stored_bytes if self._as_bytes else self._encoder(states)
        may_be_null = () if self._as_bytes else ("value",)
        for row in rows:
            absent = [column for column in self._types if row[column] is None and column not in may_be_null]
            if absent:
                raise StateError(f"state {self.name!r}: the column {absent[0]!r} of row {preview(dict(row))} is null")
            elements.append(encoded(row))
            positions.append(ElementPosition(row.get("subtask"), row.get("position")))
        return GatheredElements(elements, positions, self._info(states))

    def _stored_bytes(self, row: Mapping[str, Any]) -> Any:
        match self.kind:
            case "broadcast":
                return bytes(row["key"]), bytes(row["value"])
            case "raw-keyed":
                if not 0 <= row["key_group"] < MAX_PARALLELISM:
                    raise StateError(f"state {self.name!r}: there is no key group {row['key_group']}")
                return encode_key_group(row["key_group"], bytes(row["element"]))
            case _:
                return bytes(row["element"])

    def _encoder(self, states: OperatorStates) -> Callable[[Mapping[str, Any]], Any]:
        """Return a function that makes the element of a row, in the form that a function of the program stores."""
        if self.mode == "broadcast":
            key, value = type_info_of(self._types["key"]), type_info_of(self._types["value"])
            entries = states.get_broadcast_state(MapStateDescriptor(self.name, key, value))

            def of_entry(row: Mapping[str, Any]) -> Any:
                entries.clear()
                entries.put(row["key"], row["value"])
                return states.snapshot()[self.name][1][0]

            return of_entry
        descriptor = ListStateDescriptor(self.name, type_info_of(self._types["element"]))
        union = self.mode == "union"
        elements = states.get_union_list_state(descriptor) if union else states.get_list_state(descriptor)

        def of_element(row: Mapping[str, Any]) -> Any:
            elements.update([row["element"]])
            return states.snapshot()[self.name][1][0]

        return of_element

    def _info(self, states: OperatorStates) -> StateInfo:
        if self.kind in (RAW_OPERATOR, RAW_KEYED):
            return raw_info(self.name, self.mode)
        if self._as_bytes:
            return self._known or StateInfo(self.name, self.kind)
        (info,) = states.infos()
        return info


# -------------------------------------------------------------------------------------------------------- distribution


def by_subtask(
    rows: ElementRows, gathered: Iterable[GatheredElements], parallelism: int, max_parallelism: int
) -> list[list[Any]]:
    """Return the elements of a state that each subtask holds.

    Elements of lists go where their rows say, in the order of their positions, or of the rows without positions.
    Without a subtask, a list is divided evenly, and all of a union list is in the first subtask, as every subtask
    restores all of it. Raw keyed state is in the order of its key groups.

    Args:
        rows: The `ElementRows` that made the elements.
        gathered: The elements of each task, in the order of the tasks.
        parallelism: The number of subtasks.
        max_parallelism: The number of key groups.

    Raises:
        StateError: A subtask or key group is not one of the operator's, two elements have one position, or two rows
            are of one key of broadcast state or of one key group.
    """
    together = [(place, each) for part in gathered for place, each in zip(part.positions, part.elements, strict=True)]
    together.sort(key=lambda one: (one[0].subtask or 0, one[0].position or 0))  # stable: see `ElementPosition`
    _check_positions(rows, [place for place, _ in together])
    elements = [element for _, element in together]
    if rows.mode == "broadcast":
        if len({key for key, _ in elements}) < len(elements):
            raise StateError(f"a key of broadcast state {rows.name!r} has two rows: group the DataFrame by the key")
        return [elements] * parallelism
    found: list[list[Any]] = [[] for _ in range(parallelism)]
    if rows.kind == RAW_KEYED:
        seen: set[int] = set()
        for group, element in sorted((decode_key_group(element).key_group, element) for element in elements):
            if group in seen:
                raise StateError(
                    f"key group {group} of state {rows.name!r} has two rows, and the order of their bytes is "
                    "unknown: put the bytes of a key group into one row"
                )
            seen.add(group)
            if group >= max_parallelism:
                raise StateError(f"key group {group} of state {rows.name!r} is not one of {max_parallelism}")
            found[subtask_of(KeyGroup(group), max_parallelism, parallelism)].append(element)
    elif together and together[0][0].subtask is None:
        if rows.mode == "union":
            return [elements, *found[1:]]
        whole: OperatorState = {rows.name: ("split", elements)}
        return [cast("list[Any]", redistribute([whole], parallelism, n)[rows.name][1]) for n in range(parallelism)]
    else:
        for place, element in together:
            if not 0 <= cast(int, place.subtask) < parallelism:
                raise StateError(f"subtask {place.subtask} of state {rows.name!r} is not one of {parallelism}")
            found[cast(int, place.subtask)].append(element)
    return found


def _check_positions(rows: ElementRows, positions: Sequence[ElementPosition]) -> None:
    """Refuse elements whose positions do not determine their order; the positions are sorted."""
    for place, following in pairwise(positions):
        if place.position is not None and place == following:
            of_subtask = "" if place.subtask is None else f" of subtask {place.subtask}"
            advice = (
                "keep the column subtask, by which the positions were counted, or renumber all elements"
                if place.subtask is None
                else "renumber the elements of each subtask"
            )
            raise StateError(
                f"two elements of state {rows.name!r} have the position {place.position}{of_subtask}, so their order "
                f"is unknown: {advice}, or leave out the column position to use the order of the rows"
            )


def states_at(old: Sequence[OperatorState | None], parallelism: int) -> list[OperatorState]:
    """Return the operator state of all subtasks at another parallelism; the first holds the state that all restore."""
    found = [redistribute(old, parallelism, index) for index in range(parallelism)]
    of_all = [name for name, (mode, _) in found[0].items() if mode == "union"]
    return [found[0], *({n: state for n, state in each.items() if n not in of_all} for each in found[1:])]
