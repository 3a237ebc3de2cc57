"""The metrics of a job: the latest reports of its subtasks, one by one and combined.

A name is `<operator>.<subtask>.<metric>` for one subtask and `<operator>.<metric>` for all subtasks together. Groups
and the parts of meters and distributions follow with dots. The metrics of a whole chain stand under the chain's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph
from tamias.metrics.reports import Report, combined, flattened
from tamias.operators.epoch import Ack

__all__ = ["JobMetrics"]

Reports = dict[tuple[str, str], Report]  # by the label of an operator or chain, and the metric's name


class _Totals(NamedTuple):
    """What a subtask has done since it started."""

    records_in: int = 0
    records_out: int = 0
    busy_ms: float = 0.0
    blocked_ms: float = 0.0
    aligned_ms: float = 0.0
    held_blobs: int = 0


class JobMetrics:
    """The latest report of every subtask. The job's thread adds reports, any thread reads them."""

    def __init__(self, graph: JobGraph) -> None:
        self._labels = _labels(graph)
        self._chains = _chain_labels(graph)
        self._totals: dict[SubtaskId, _Totals] = {}
        self._reports: dict[SubtaskId, Reports] = {}

    def restart(self, subtasks: Iterable[SubtaskId]) -> None:
        """Forget the reports of subtasks that restart."""
        for subtask in subtasks:
            self._totals.pop(subtask, None)
            self._reports.pop(subtask, None)

    def add(self, acks: Iterable[Ack]) -> None:
        """Add the reports of one epoch."""
        for ack in acks:
            subtask = SubtaskId(ack.vertex, ack.subtask)
            before = self._totals.get(subtask, _Totals())
            totals = _Totals(
                before.records_in + ack.records_in,
                before.records_out + ack.records_out,
                before.busy_ms + ack.busy_ms,
                before.blocked_ms + ack.blocked_ms,
                before.aligned_ms + ack.aligned_ms,
                before.held_blobs + ack.held_blobs,
            )
            self._totals[subtask] = totals
            own = {(self._labels[operator], name): report for (operator, name), report in ack.metrics.items()}
            self._reports[subtask] = own | self._of_chain(self._chains[ack.vertex], totals, ack.watermark)

    def values(self) -> dict[str, Any]:
        """Return the latest metrics of every subtask and of all subtasks together, by name. Thread-safe."""
        reports = dict(self._reports)
        together: dict[tuple[str, str], list[Report]] = {}
        found: dict[str, Any] = {}
        for (_, index), of_subtask in sorted(reports.items()):
            for (label, name), report in of_subtask.items():
                found |= flattened(f"{label}.{index}.{name}", report.values)
                together.setdefault((label, name), []).append(report)
        for (label, name), parts in together.items():
            found |= flattened(f"{label}.{name}", combined(parts))
        return found

    @staticmethod
    def _of_chain(label: str, totals: _Totals, watermark: int) -> Reports:
        return {
            (label, "numRecordsIn"): Report("counter", {"": totals.records_in}),
            (label, "numRecordsOut"): Report("counter", {"": totals.records_out}),
            (label, "busyTimeMs"): Report("counter", {"": round(totals.busy_ms, 3)}),
            (label, "backPressuredTimeMs"): Report("counter", {"": round(totals.blocked_ms, 3)}),
            (label, "alignmentTimeMs"): Report("counter", {"": round(totals.aligned_ms, 3)}),
            (label, "alignmentHeldBlobs"): Report("counter", {"": totals.held_blobs}),
            (label, "currentInputWatermark"): Report("lowest", {"": watermark}),
        }


def _labels(graph: JobGraph) -> Mapping[str, str]:
    """Return the label of each operator: its name, with its uid or the start of its id if several share the name."""
    operators = [operator for vertex in graph.vertices for operator in vertex.operators]
    often = Counter(operator.name for operator in operators)
    return {o.id: o.name if often[o.name] == 1 else f"{o.name} ({o.uid or o.id[:8]})" for o in operators}


def _chain_labels(graph: JobGraph) -> Mapping[int, str]:
    often = Counter(vertex.name for vertex in graph.vertices)
    return {v.id: v.name if often[v.name] == 1 else f"{v.name} [{v.id}]" for v in graph.vertices}
