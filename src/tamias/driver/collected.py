"""Collected records on their way to the program: kept back until no failure can take them back."""

from __future__ import annotations

from typing import Any

from tamias.driver.job_handle import JobHandle
from tamias.graph.addresses import SubtaskId


class CollectedRecords:
    """The records of epochs that are over, in order, until they are released."""

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle
        self._held: list[tuple[int, SubtaskId, list[Any]]] = []

    def hold(self, epoch: int, subtask: SubtaskId, records: list[Any]) -> None:
        """Keep what a subtask collected in an epoch."""
        if records:
            self._held.append((epoch, subtask, records))

    def release(self, epoch: int) -> None:
        """Hand over what was collected up to an epoch: nothing can take it back now."""
        for number, _, records in self._held:
            if number <= epoch:
                self._handle.deliver(records)
        self._held = [held for held in self._held if held[0] > epoch]

    def drop(self, only: frozenset[SubtaskId] | None = None) -> None:
        """Forget what a failed attempt collected, all or some subtasks of it: it will be collected again."""
        self._held = [held for held in self._held if only is not None and held[1] not in only]
