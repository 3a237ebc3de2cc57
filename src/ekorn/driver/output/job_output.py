"""The output of a job in the driver: printed lines, collected records, accumulators, metrics and progress."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ekorn.driver.checkpoints.checkpoint_positions import CheckpointPosition
from ekorn.driver.job_results import JobResults
from ekorn.driver.job_view import JobView
from ekorn.driver.output.collect_queue import CollectQueue, CollectSpill, WaitingRun
from ekorn.driver.statistics.job_metrics import JobMetrics
from ekorn.errors import AccumulatorError, CollectSpillError, EkornError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import Ack
from ekorn.operators.sinks.collected_run import CollectedRun
from ekorn.types.time_bounds import MIN_TIMESTAMP

__all__ = ["CollectedRecords", "JobOutput", "merge_accumulators"]


class JobOutput:
    """Publishes the output of each epoch.

    Args:
        graph: The job.
        view: Where progress is published.
        results: Where collected records and accumulators go.
        metrics: Where metrics are gathered.
        takes_back: Whether a failure takes back what was collected since the last checkpoint, or since the start.
        collect_buffer_bytes: How many bytes of collected records stay in memory.
    """

    def __init__(
        self,
        graph: JobGraph,
        view: JobView,
        results: JobResults,
        metrics: JobMetrics,
        *,
        takes_back: bool,
        collect_buffer_bytes: int,
    ) -> None:
        self._graph = graph
        self._view = view
        self._results = results
        self._metrics = metrics
        self._takes_back = takes_back
        self._collected = CollectedRecords(results.collected, collect_buffer_bytes)
        self._committed_read: Mapping[SubtaskId, int] = {}
        self._read: Counter[SubtaskId] = Counter()

    @property
    def records_read(self) -> dict[SubtaskId, int]:
        """The records that each source subtask has read, without those that a failure has reverted."""
        return dict(self._read)

    def change_graph(self, graph: JobGraph) -> None:
        """Expect the output of the subtasks of another graph."""
        self._graph = graph

    def begin_attempt(self, region: frozenset[SubtaskId] | None) -> None:
        """Drop the output of a region, or of all subtasks, since the last checkpoint."""
        self._collected.drop(region)
        for subtask in self._read.keys() if region is None else self._read.keys() & region:
            self._read[subtask] = self._committed_read.get(subtask, 0)

    def show(self, epoch: int, acks: Sequence[Ack], wall_ms: float) -> None:
        """Publish the output of an epoch."""
        if sys.stdout is not None:  # None in a process that was started without one, as for `print`
            for ack in acks:
                for line in ack.lines:
                    sys.stdout.write(line + "\n")
            sys.stdout.flush()
        sources = [ack for ack in acks if self._graph.vertices[ack.vertex].is_source]
        for ack in sources:
            self._read[SubtaskId(ack.vertex, ack.subtask)] += ack.records_in
        for ack in acks:
            self._collected.add(epoch, SubtaskId(ack.vertex, ack.subtask), ack.collected)
        if not self._takes_back:
            self.release(epoch)
        self._results.set_accumulators(merge_accumulators([a.accumulators for a in acks]))
        self._metrics.add(acks)
        watermarks = [a.watermark for a in acks if not self._graph.vertices[a.vertex].is_source]
        progress = self._view.progress()
        self._view.update(
            replace(
                progress,
                epochs=progress.epochs + 1,
                records_read=self._read.total(),
                last_epoch_ms=wall_ms,
                last_epoch_records=sum(ack.records_in for ack in sources),
                watermark=min(watermarks, default=MIN_TIMESTAMP),
            )
        )

    def commit(self, position: CheckpointPosition) -> None:
        """Release the records that were collected up to the position of a completed checkpoint."""
        self._committed_read = position.records_read
        self.release(position.epoch)

    def release(self, epoch: int) -> None:
        """Release the records that were collected up to an epoch. A failure cannot revert them any more."""
        self._collected.release(epoch)


def merge_accumulators(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one accumulator per name.

    Args:
        parts: The accumulators of each subtask, by name.

    Raises:
        AccumulatorError: Two accumulators of different classes have one name, or a merge failed.
    """
    merged: dict[str, Any] = {}
    for part in parts:
        for name, accumulator in part.items():
            found = merged.get(name)
            if found is None:
                merged[name] = accumulator.clone()
            elif type(found) is not type(accumulator):
                raise AccumulatorError(
                    f"accumulator {name!r} is a {type(found).__name__} in one operator and a "
                    f"{type(accumulator).__name__} in another; give them different names"
                )
            else:
                try:
                    found.merge(accumulator)
                except EkornError:
                    raise
                except Exception as error:
                    raise AccumulatorError(f"accumulator {name!r} could not be merged: {error}") from error
    return merged


class _Unreleased(NamedTuple):
    epoch: int
    subtask: SubtaskId
    run: WaitingRun


class CollectedRecords:
    """The records of completed epochs, in order, until they are released.

    Records wait here for a checkpoint, and in the queue for the program. Together they take up to `most_bytes` of
    memory. What exceeds that waits on disk: an epoch may collect any amount, and a checkpoint may be long in coming.

    Args:
        queue: Where released records go.
        most_bytes: The memory for records.
    """

    def __init__(self, queue: CollectQueue, most_bytes: int) -> None:
        self._queue = queue
        self._most_bytes = most_bytes
        self._unreleased: list[_Unreleased] = []
        self._unreleased_bytes = 0
        self._spill = CollectSpill()

    def add(self, epoch: int, subtask: SubtaskId, runs: list[CollectedRun]) -> None:
        """Add the records that a subtask has collected in an epoch.

        Raises:
            CollectSpillError: The records exceed the memory for them, and the disk cannot take them.
        """
        for run in runs:
            waiting: WaitingRun = run
            if self._queue.size_bytes + self._unreleased_bytes + run.size_bytes > self._most_bytes:
                try:
                    waiting = self._spill.store(run)
                except OSError as error:
                    raise CollectSpillError(run.size_bytes, self._most_bytes, str(error)) from error
            self._unreleased.append(_Unreleased(epoch, subtask, waiting))
            self._unreleased_bytes += run.size_bytes

    def release(self, epoch: int) -> None:
        """Release the records that were collected up to an epoch to the program."""
        for each in self._unreleased:
            if each.epoch <= epoch:
                self._queue.put(each.run)
        self._keep([each for each in self._unreleased if each.epoch > epoch])

    def drop(self, region: frozenset[SubtaskId] | None = None) -> None:
        """Drop the records of the subtasks of a region, or of all subtasks, which will collect them again."""
        self._keep([each for each in self._unreleased if region is not None and each.subtask not in region])

    def _keep(self, unreleased: list[_Unreleased]) -> None:
        self._unreleased = unreleased
        self._unreleased_bytes = sum(one.run.size_bytes for one in unreleased)
