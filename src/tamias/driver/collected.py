"""Collected records on their way to the program: held until no failure can take them back."""

from __future__ import annotations

from typing import Any

from tamias.driver.job_handle import JobHandle
from tamias.graph.addresses import SubtaskId

__all__ = ["CollectedRecords"]


class CollectedRecords:
    """The records of completed epochs, in order, until they are released."""

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle
        self._held: list[tuple[int, SubtaskId, list[Any]]] = []

    def hold(self, epoch: int, subtask: SubtaskId, records: list[Any]) -> None:
        """Hold what a subtask has collected in an epoch."""
        if records:
            self._held.append((epoch, subtask, records))

    def release(self, epoch: int) -> None:
        """Hand over to the program what was collected up to an epoch."""
        for number, _, records in self._held:
            if number <= epoch:
                self._handle.deliver(records)
        self._held = [held for held in self._held if held[0] > epoch]

    def drop(self, region: frozenset[SubtaskId] | None = None) -> None:
        """Forget what the subtasks of a region, or all of them, have collected: it will be collected again."""
        self._held = [held for held in self._held if region is not None and held[1] not in region]
