"""Writes an operator of another savepoint into a new one: some of its states are replaced, the others are copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.errors import StateError
from ekorn.keygroups import key_group_range
from ekorn.operators.windows.saved_slices import FIRING_MARKS
from ekorn.state.canonical_format import TableEntries
from ekorn.state.declared import merged
from ekorn.state.keyed_backend import write_tables
from ekorn.state.operator_state_files import OperatorState, encode_operator_state
from ekorn.state.snapshots import CANONICAL, RAW_KEYED, KeyedFiles, OperatorSnapshot, StateFile, StateInfo
from ekorn.state_processor.reading.entries import pieces_of
from ekorn.state_processor.reading.operator_state_rows import ElementRows, GatheredElements, by_subtask, states_at
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.stand_ins import stand_ins_importable
from ekorn.state_processor.writing.new_savepoint import NewSavepoint, WrittenFiles

__all__ = [
    "check_key_groups",
    "check_nothing_in_flight",
    "keeping_operator_state",
    "replacing_keyed_states",
    "replacing_operator_state",
]


# ---------------------------------------------------------------------------------------------------------- keyed state


def check_nothing_in_flight(operator: StoredOperator) -> None:
    """Refuse an operator with records that were on their way to it: rows of its state do not have them.

    Raises:
        StateError: The checkpoint was unaligned and stored such records.
    """
    if any(each is not None and each.files for each in operator.metadata.in_flight):
        raise StateError(
            f"the checkpoint holds records in flight to operator {operator.label}, which would be lost if all its "
            "keyed state were rewritten: use a savepoint as the base"
        )


def replacing_keyed_states(
    savepoint: NewSavepoint,
    operator: StoredOperator,
    replaced: frozenset[str],
    infos: Sequence[StateInfo],
    written: Mapping[int, Sequence[StateFile]],
) -> OperatorMetadata:
    """Write an operator of another savepoint in which some keyed states are replaced; everything else is copied.

    A part is read and written again piece by piece, unless it has none of the states and is in the canonical format.

    Args:
        savepoint: The new savepoint.
        operator: The operator in the other one.
        replaced: The names of the states that are left out.
        infos: The descriptions of the states that were written.
        written: Their files, by subtask.
    """
    metadata = operator.metadata
    copied = savepoint.copied([_without_keyed(operator, replaced)])[0]
    target = WrittenFiles(savepoint.files, hashed=savepoint.key is not None)
    states = merged([*(info for info in metadata.states if info.of_subtask or info.name not in replaced), *infos])

    def of_subtask(number: int) -> OperatorSnapshot:
        mine = copied.subtasks[number] or OperatorSnapshot(metadata.operator_id, metadata.uid, metadata.name)
        before = metadata.subtasks[number]
        part = None if before is None else before.keyed
        if part is not None and mine.keyed is None:
            kept: tuple[StateFile, ...] = write_tables(_without(operator, part, replaced), target, target.exclusive)
        else:
            kept = () if mine.keyed is None else mine.keyed.files
        groups = key_group_range(metadata.max_parallelism, metadata.parallelism, number)
        assert part is None or part.key_groups == groups, "a savepoint has the key groups of a subtask in one part"
        return replace(mine, keyed=KeyedFiles(*groups, (*kept, *written.get(number, ()))), states=states)

    return replace(copied, subtasks=tuple(map(of_subtask, range(metadata.parallelism))), states=states)


def _without(operator: StoredOperator, part: KeyedFiles, replaced: frozenset[str]) -> Iterator[TableEntries]:
    for tables in pieces_of(operator, part):
        with stand_ins_importable():  # keys and values of missing classes are pickled again under their names
            for info, entries in tables.values():
                if info.name not in replaced:
                    yield TableEntries(info, list(entries), list(entries.values()), [], full=True)


def _without_keyed(operator: StoredOperator, replaced: Iterable[str]) -> StoredOperator:
    """Return the operator without the parts that are not copied as they are."""
    there = {info.name for info in operator.keyed_states}.intersection(replaced)

    def of_subtask(snapshot: OperatorSnapshot | None) -> OperatorSnapshot | None:
        if snapshot is None or snapshot.keyed is None or (snapshot.keyed.format == CANONICAL and not there):
            return snapshot
        return replace(snapshot, keyed=None)

    return replace(
        operator, metadata=replace(operator.metadata, subtasks=tuple(map(of_subtask, operator.metadata.subtasks)))
    )


# ------------------------------------------------------------------------------------------------------- operator state


def replacing_operator_state(
    savepoint: NewSavepoint, operator: StoredOperator, rows: ElementRows, gathered: Sequence[GatheredElements]
) -> OperatorMetadata:
    """Write an operator of another savepoint in which one operator state is replaced; everything else is copied.

    Raises:
        StateError: A row does not fit the operator.
    """
    metadata = operator.metadata
    elements = by_subtask(rows, gathered, metadata.parallelism, metadata.max_parallelism)
    states: list[OperatorState] = [
        (operator.operator_state(subtask) or {}) | {rows.name: (rows.mode, elements[subtask])}
        for subtask in range(metadata.parallelism)
    ]
    infos = [info for info in metadata.states if info.of_subtask and info.name != rows.name]
    infos += merged(part.info for part in gathered)
    copied = savepoint.copied([replace(operator, metadata=_without_operator_state(metadata))])[0]
    return _with_operator_state(savepoint, copied, states, infos)


def keeping_operator_state(
    savepoint: NewSavepoint, operator: StoredOperator, written: OperatorMetadata
) -> OperatorMetadata:
    """Return an operator with new keyed state, and with the operator state that it has in another savepoint.

    The operator has passed `check_key_groups`.
    """
    infos = [info for info in operator.metadata.states if info.of_subtask]
    if not infos:
        return written
    states = states_at(operator.operator_states(), written.parallelism)
    return _with_operator_state(savepoint, written, states, infos)


def check_key_groups(operator: StoredOperator, max_parallelism: int) -> None:
    """Refuse another number of key groups for an operator whose operator state belongs to key groups.

    Raises:
        StateError: The operator has raw keyed state, or marks of fired windows, of other key groups.
    """
    before = operator.metadata.max_parallelism
    if before == max_parallelism:
        return
    for info in operator.metadata.states:
        if info.kind == RAW_KEYED or (info.of_subtask and info.name == FIRING_MARKS):
            what = "raw keyed state" if info.kind == RAW_KEYED else "windows in slices, with marks of what has fired,"
            raise StateError(
                f"operator {operator.label} has {what} of {before} key groups, and cannot be written with "
                f"{max_parallelism}: set maxParallelism to {before}"
            )


def _without_operator_state(metadata: OperatorMetadata) -> OperatorMetadata:
    subtasks = tuple(None if each is None else replace(each, operator_state=None) for each in metadata.subtasks)
    return replace(metadata, subtasks=subtasks)


def _with_operator_state(
    savepoint: NewSavepoint, metadata: OperatorMetadata, states: Sequence[OperatorState], infos: Iterable[StateInfo]
) -> OperatorMetadata:
    target = WrittenFiles(savepoint.files, hashed=savepoint.key is not None)
    all_infos = merged([*(info for info in metadata.states if not info.of_subtask), *infos])

    def of_subtask(snapshot: OperatorSnapshot | None, state: OperatorState) -> OperatorSnapshot | None:
        if not any(elements for _, elements in state.values()):
            return snapshot if snapshot is None else replace(snapshot, states=all_infos)
        file = target.write(target.exclusive("operator"), encode_operator_state(state))
        mine = snapshot or OperatorSnapshot(metadata.operator_id, metadata.uid, metadata.name)
        return replace(mine, operator_state=file, states=all_infos)

    subtasks = tuple(of_subtask(snapshot, state) for snapshot, state in zip(metadata.subtasks, states, strict=True))
    return replace(metadata, subtasks=subtasks, states=all_infos)
