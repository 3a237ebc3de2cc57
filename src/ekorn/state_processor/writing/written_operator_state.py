"""Writes operator state into a new savepoint, beside the keyed state of the same operator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.errors import StateError
from ekorn.operators.windows.saved_slices import FIRING_MARKS
from ekorn.state.declared import merged
from ekorn.state.operator_state_files import OperatorState, encode_operator_state
from ekorn.state.snapshots import RAW_KEYED, OperatorSnapshot, StateInfo
from ekorn.state_processor.reading.operator_state_rows import ElementRows, GatheredElements, by_subtask, states_at
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.writing.new_savepoint import NewSavepoint, WrittenFiles

__all__ = ["check_key_groups", "keeping_operator_state", "replacing_operator_state"]


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
    """Return an operator whose keyed state was written anew, with the operator state that it has in another savepoint.

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
