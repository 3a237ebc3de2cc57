"""The output of a job in the driver: printed lines, collected records, accumulators, metrics and progress."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ekorn.driver.checkpoints.cuts import Cut
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.output.accumulator_merge import merge_accumulators
from ekorn.driver.output.collected import CollectedRecords
from ekorn.driver.statistics.job_metrics import JobMetrics
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import Ack
from ekorn.types.time_bounds import MIN_TIMESTAMP

__all__ = ["JobOutput"]


class JobOutput:
    """Publishes what each epoch has put out.

    Args:
        graph: The job.
        handle: Where the output is published.
        metrics: Where metrics are gathered.
        takes_back: Whether a failure takes back what was collected since the last checkpoint, or since the start.
        collect_buffer_bytes: How many bytes of collected records stay in memory.
    """

    def __init__(
        self, graph: JobGraph, handle: JobHandle, metrics: JobMetrics, *, takes_back: bool, collect_buffer_bytes: int
    ) -> None:
        self._graph = graph
        self._handle = handle
        self._metrics = metrics
        self._takes_back = takes_back
        self._collected = CollectedRecords(handle, collect_buffer_bytes)
        self._committed_read: Mapping[SubtaskId, int] = {}
        self._read: Counter[SubtaskId] = Counter()

    @property
    def records_read(self) -> dict[SubtaskId, int]:
        """How many records each source subtask has read, without those that a failure has taken back."""
        return dict(self._read)

    def change_graph(self, graph: JobGraph) -> None:
        """Take the output of the subtasks of another graph from now on."""
        self._graph = graph

    def begin_attempt(self, region: frozenset[SubtaskId] | None) -> None:
        """Forget what the subtasks of a region, or all of them, have put out since the last checkpoint."""
        self._collected.drop(region)
        for subtask in self._read.keys() if region is None else self._read.keys() & region:
            self._read[subtask] = self._committed_read.get(subtask, 0)

    def show(self, epoch: int, acks: list[Ack], wall_ms: float) -> None:
        """Publish what an epoch has put out."""
        for ack in acks:
            for line in ack.lines:
                sys.stdout.write(line + "\n")
        sys.stdout.flush()
        sources = [ack for ack in acks if self._graph.vertices[ack.vertex].is_source]
        for ack in sources:
            self._read[SubtaskId(ack.vertex, ack.subtask)] += ack.records_in
        for ack in acks:
            self._collected.hold(epoch, SubtaskId(ack.vertex, ack.subtask), ack.collected)
        if not self._takes_back:
            self.release(epoch)
        self._handle.set_accumulators(merge_accumulators([a.accumulators for a in acks]))
        self._metrics.add(acks)
        watermarks = [a.watermark for a in acks if not self._graph.vertices[a.vertex].is_source]
        progress = self._handle.progress()
        self._handle.update(
            replace(
                progress,
                epochs=progress.epochs + 1,
                records_read=self._read.total(),
                last_epoch_ms=wall_ms,
                last_epoch_records=sum(ack.records_in for ack in sources),
                watermark=min(watermarks, default=MIN_TIMESTAMP),
            )
        )

    def commit(self, cut: Cut) -> None:
        """Hand over what was collected up to the cut of a completed checkpoint."""
        self._committed_read = cut.records_read
        self.release(cut.epoch)

    def release(self, epoch: int) -> None:
        """Hand over what was collected up to an epoch: no failure can take it back."""
        self._collected.release(epoch)
