"""Writes operator state into a new savepoint, beside the keyed state of the same operator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tamias.checkpoint.metadata import OperatorMetadata
from tamias.errors import StateError
from tamias.state.declared import merged
from tamias.state.operator_state_files import OperatorState, encode_operator_state
from tamias.state.snapshots import RAW_KEYED, OperatorSnapshot, StateInfo
from tamias.state_processor.new_savepoint import NewSavepoint, WrittenFiles
from tamias.state_processor.operator_state_rows import ElementRows, GatheredElements, by_subtask, states_at
from tamias.state_processor.stored_savepoint import StoredOperator

__all__ = ["keeping_operator_state", "replacing_operator_state"]


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

    Raises:
        StateError: The operator has raw keyed state, which belongs to key groups that the new operator does not have.
    """
    infos = [info for info in operator.metadata.states if info.of_subtask]
    if not infos:
        return written
    before, now = operator.metadata.max_parallelism, written.max_parallelism
    if before != now and any(info.kind == RAW_KEYED for info in infos):
        raise StateError(
            f"operator {operator.label} has raw keyed state of {before} key groups, and cannot be written with {now}: "
            f"set maxParallelism to {before}"
        )
    states = states_at(operator.operator_states(), written.parallelism)
    return _with_operator_state(savepoint, written, states, infos)


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
