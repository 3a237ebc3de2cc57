"""The output of a job in the driver: printed lines, collected records, accumulators, metrics and progress."""

from __future__ import annotations

import sys
from dataclasses import replace

from tamias.driver.accumulator_merge import merge_accumulators
from tamias.driver.collected import CollectedRecords
from tamias.driver.cuts import Cut
from tamias.driver.job_handle import JobHandle
from tamias.driver.job_metrics import JobMetrics
from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph
from tamias.operators.epoch import Ack
from tamias.types.time_bounds import MIN_TIMESTAMP

__all__ = ["JobOutput"]


class JobOutput:
    """Publishes what each epoch has put out.

    Args:
        graph: The job.
        handle: Where the output is published.
        metrics: Where metrics are gathered.
        takes_back: Whether a failure takes back what was collected since the last checkpoint, or since the start.
        collect_buffer_bytes: How many bytes of collected records stay in memory.

    Attributes:
        records_read: How many records the sources have read, without those that a failure has taken back.
    """

    def __init__(
        self, graph: JobGraph, handle: JobHandle, metrics: JobMetrics, *, takes_back: bool, collect_buffer_bytes: int
    ) -> None:
        self._graph = graph
        self._handle = handle
        self._metrics = metrics
        self._takes_back = takes_back
        self._collected = CollectedRecords(handle, collect_buffer_bytes)
        self._committed_records_read = 0
        self.records_read = 0

    def begin_attempt(self, region: frozenset[SubtaskId] | None) -> None:
        """Forget what the subtasks of a region, or all of them, have put out since the last checkpoint."""
        self._collected.drop(region)
        self.records_read = self._committed_records_read

    def show(self, epoch: int, acks: list[Ack], wall_ms: float) -> None:
        """Publish what an epoch has put out."""
        for ack in acks:
            for line in ack.lines:
                sys.stdout.write(line + "\n")
        sys.stdout.flush()
        read = sum(a.records_in for a in acks if self._graph.vertices[a.vertex].is_source)
        self.records_read += read
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
                records_read=self.records_read,
                last_epoch_ms=wall_ms,
                last_epoch_records=read,
                watermark=min(watermarks, default=MIN_TIMESTAMP),
            )
        )

    def commit(self, cut: Cut) -> None:
        """Hand over what was collected up to the cut of a completed checkpoint."""
        self._committed_records_read = cut.records_read
        self.release(cut.epoch)

    def release(self, epoch: int) -> None:
        """Hand over what was collected up to an epoch: no failure can take it back."""
        self._collected.release(epoch)
