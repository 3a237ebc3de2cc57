"""What a job puts out in the driver: printed lines, collected records, accumulators, metrics, how far it is."""

from __future__ import annotations

import sys
from dataclasses import replace

from tamias.driver.collected import CollectedRecords
from tamias.driver.job_checkpoints import Carried
from tamias.driver.job_handle import JobHandle, merge_accumulators
from tamias.driver.job_metrics import JobMetrics
from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph
from tamias.operators.epoch import Ack
from tamias.types.time_bounds import MIN_TIMESTAMP

__all__ = ["JobOutput"]


class JobOutput:
    """Shows what epochs gave.

    Args:
        graph: The job.
        handle: Where it is shown.
        metrics: Where metrics are gathered.
        takes_back: Whether a failure takes back what was collected since the last checkpoint, or since the start.
    """

    def __init__(self, graph: JobGraph, handle: JobHandle, metrics: JobMetrics, *, takes_back: bool) -> None:
        self._graph = graph
        self._handle = handle
        self._metrics = metrics
        self._takes_back = takes_back
        self._collected = CollectedRecords(handle)
        self._read_by_completed = 0
        self.records_read = 0  # by sources, of what no failure took back

    def begin_attempt(self, only: frozenset[SubtaskId] | None) -> None:
        """All subtasks, or only some, start again from the last checkpoint: what they put out since is forgotten."""
        self._collected.drop(only)
        self.records_read = self._read_by_completed

    def show(self, epoch: int, acks: list[Ack], wall_ms: float) -> None:
        """An epoch is over."""
        for ack in acks:
            for line in ack.lines:
                sys.stdout.write(line + "\n")
        sys.stdout.flush()
        read = sum(a.records_in for a in acks if self._graph.vertices[a.vertex].is_source)
        self.records_read += read
        for ack in acks:
            self._collected.hold(epoch, SubtaskId(ack.vertex, ack.subtask), ack.records)
        if not self._takes_back:
            self.release(epoch)
        self._handle.set_accumulators(merge_accumulators([a.accumulators for a in acks]))
        self._metrics.add(acks)
        marks = [a.watermark for a in acks if not self._graph.vertices[a.vertex].is_source]
        progress = self._handle.progress()
        self._handle.update(
            replace(
                progress,
                epochs=progress.epochs + 1,
                records_read=self.records_read,
                last_epoch_ms=wall_ms,
                last_epoch_records=read,
                watermark=min(marks, default=MIN_TIMESTAMP),
            )
        )

    def committed(self, cut: Carried) -> None:
        """A checkpoint came to exist: what was put out before it stands."""
        self._read_by_completed = cut.records_read
        self.release(cut.epoch)

    def release(self, epoch: int) -> None:
        """Nothing can take back what was collected up to an epoch."""
        self._collected.release(epoch)
