"""Writes keyed state of an operator into a new savepoint: all of it anew, or some states in place of those it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.errors import StateError
from ekorn.keygroups import key_group_range
from ekorn.state.canonical_format import TableEntries
from ekorn.state.declared import merged
from ekorn.state.keyed_backend import write_tables
from ekorn.state.snapshots import CANONICAL, KeyedFiles, OperatorSnapshot, StateFile, StateInfo
from ekorn.state_processor.reading.entries import pieces_of
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.state_processor.stand_ins import stand_ins_importable
from ekorn.state_processor.writing.new_savepoint import NewSavepoint, WrittenFiles

__all__ = ["check_nothing_in_flight", "replacing_keyed_states"]


def check_nothing_in_flight(operator: StoredOperator) -> None:
    """Refuse an operator with records that were on their way to it: rows of its state do not have them.

    Raises:
        StateError: The checkpoint was unaligned and stored such records.
    """
    if any(each is not None and each.files for each in operator.metadata.in_flight):
        raise StateError(
            f"the checkpoint holds records that were on their way to operator {operator.label}, which a write of all "
            "its keyed state would lose: base the write on a savepoint"
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
