"""Firing marks: how far the windows of the slice layout had fired when a checkpoint was taken.

Slices do not say which windows have fired: without this mark a restored job would emit windows again that had fired
before the checkpoint. The mark holds for all keys of a subtask, so it is one line of operator state, with the range of
key groups that it holds for. After rescaling, a subtask may have keys with different marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.functions.state.state_handles import ListState
from ekorn.keygroups import KeyGroupRange, key_group, user_key
from ekorn.state.operator_state import OperatorStates
from ekorn.types.time_bounds import MIN_TIMESTAMP

FIRING_MARKS = "_window/progress"
"""The name of the operator state with the marks."""


@dataclass(frozen=True, slots=True)
class FiringMark:
    """The ends up to which windows of some key groups had fired and been dropped."""

    key_group_first: int
    key_group_last: int
    size_ms: int  # of the windows: windows of another size may have the same slices
    dropped_ms: int = MIN_TIMESTAMP  # windows that end up to here have been dropped from the slices
    fired_ms: int = MIN_TIMESTAMP  # windows that end up to here have fired; later than `dropped_ms` they are in slices


class FiringMarks:
    """The marks of all subtasks in the restored checkpoint, and this subtask's mark in the next one."""

    def __init__(self, states: OperatorStates) -> None:
        self._state: ListState[Any] = states.get_union_list_state(ListStateDescriptor(FIRING_MARKS))

    def of(self, key_groups: KeyGroupRange) -> list[FiringMark]:
        """Return the restored marks that overlap a range of key groups."""
        saved = [FiringMark(*line) for line in self._state.get()]
        return [
            mark
            for mark in saved
            if mark.key_group_first <= key_groups.last and key_groups.first <= mark.key_group_last
        ]

    def clear(self) -> None:
        """Save no mark in the next checkpoint: the windows are not in slices any more."""
        self._state.clear()

    def save(self, mark: FiringMark) -> None:
        """Save a mark in the next checkpoint."""
        self._state.update([astuple(mark)])


def mark_of(key: Any, marks: Iterable[FiringMark], max_parallelism: int) -> FiringMark:
    """Return how far the windows of a key had fired."""
    group = key_group(user_key(key), max_parallelism)
    return next((m for m in marks if m.key_group_first <= group <= m.key_group_last), FiringMark(group, group, 0))
