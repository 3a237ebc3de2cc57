"""How far windows in slices had come when a checkpoint was taken.

Slices say nothing of windows: without this a restored job would give again what it gave before the checkpoint. It
holds for all keys of a subtask, so it is one line of operator state, with the key groups that it is about: after
rescaling, a subtask may have keys of several that had come to different times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

from tamias.functions.state_descriptors import ListStateDescriptor
from tamias.functions.state_handles import ListState
from tamias.keygroups import key_group, user_key
from tamias.state.operator_state import OperatorStates
from tamias.types.time_bounds import MIN_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the windows of some key groups had come."""

    group_first: int
    group_last: int
    size_ms: int  # of the windows: slices are the same for some others
    gone_ms: int = MIN_TIMESTAMP  # of windows that end up to here, slices say nothing any more
    fired_ms: int = MIN_TIMESTAMP  # windows that end up to here have fired; after `gone_ms` they are still in slices


class SavedProgress:
    """The progress of all subtasks in the checkpoint that an operator was restored from, and its own in the next."""

    def __init__(self, states: OperatorStates) -> None:
        self._state: ListState[Any] = states.get_union_list_state(ListStateDescriptor("_window/progress"))

    def of(self, groups: tuple[int, int]) -> list[Progress]:
        """What is known of a range of key groups."""
        first, last = groups
        saved = [Progress(*line) for line in self._state.get()]
        return [p for p in saved if p.group_first <= last and first <= p.group_last]

    def forget(self) -> None:
        """Let the next checkpoint say nothing: windows are no longer in slices."""
        self._state.clear()

    def save(self, progress: Progress) -> None:
        """Let the next checkpoint say this."""
        self._state.update([astuple(progress)])


def progress_of(key: Any, saved: Iterable[Progress], max_parallelism: int) -> Progress:
    """How far the windows of a key had come."""
    group = key_group(user_key(key), max_parallelism)
    return next((p for p in saved if p.group_first <= group <= p.group_last), Progress(group, group, 0))
