"""Collected records on their way to the program: held until no failure can take them back."""

from __future__ import annotations

from typing import NamedTuple

from ekorn.driver.job_handle import JobHandle
from ekorn.driver.output.collect_queue import WaitingRun
from ekorn.driver.output.collect_spill import CollectSpill
from ekorn.errors import CollectSpillError
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.sinks.collected_run import CollectedRun

__all__ = ["CollectedRecords"]


class _Held(NamedTuple):
    epoch: int
    subtask: SubtaskId
    run: WaitingRun


class CollectedRecords:
    """The records of completed epochs, in order, until they are released.

    Records wait here for a checkpoint, and in the handle for the program. Together they take up to `most_bytes` of
    memory. What exceeds that waits on disk: an epoch may collect any amount, and a checkpoint may be long in coming.

    Args:
        handle: Where released records go.
        most_bytes: The memory for records.
    """

    def __init__(self, handle: JobHandle, most_bytes: int) -> None:
        self._handle = handle
        self._most_bytes = most_bytes
        self._held: list[_Held] = []
        self._held_bytes = 0
        self._spill = CollectSpill()

    def hold(self, epoch: int, subtask: SubtaskId, runs: list[CollectedRun]) -> None:
        """Hold what a subtask has collected in an epoch.

        Raises:
            CollectSpillError: The records exceed the memory for them, and the disk cannot take them.
        """
        for run in runs:
            waiting: WaitingRun = run
            if self._handle.collected_bytes + self._held_bytes + run.size_bytes > self._most_bytes:
                try:
                    waiting = self._spill.store(run)
                except OSError as error:
                    raise CollectSpillError(run.size_bytes, self._most_bytes, str(error)) from error
            self._held.append(_Held(epoch, subtask, waiting))
            self._held_bytes += run.size_bytes

    def release(self, epoch: int) -> None:
        """Hand over to the program what was collected up to an epoch."""
        for held in self._held:
            if held.epoch <= epoch:
                self._handle.deliver(held.run)
        self._keep([held for held in self._held if held.epoch > epoch])

    def drop(self, region: frozenset[SubtaskId] | None = None) -> None:
        """Forget what the subtasks of a region, or all of them, have collected: it will be collected again."""
        self._keep([held for held in self._held if region is not None and held.subtask not in region])

    def _keep(self, held: list[_Held]) -> None:
        self._held = held
        self._held_bytes = sum(one.run.size_bytes for one in held)
