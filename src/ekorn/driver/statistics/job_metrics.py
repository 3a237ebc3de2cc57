"""The metrics of a job: the latest reports of its subtasks, one by one and combined.

A name is `<operator>.<subtask>.<metric>` for one subtask and `<operator>.<metric>` for all subtasks together. Groups
and the parts of meters and distributions follow with dots. The metrics of a whole chain stand under the chain's name.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ekorn.clock import Clock, SystemClock
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.metrics.reports import Report, combined, flattened
from ekorn.operators.epoch import Ack
from ekorn.types.time_bounds import MIN_TIMESTAMP

__all__ = ["JobMetrics", "Rates", "Totals"]

_SAMPLE_S = 1.0
_SAMPLES = 10  # rates are taken over the ten seconds before the last report
_SILENCE_S = 60.0  # without a report; behind a slow operator reports are many seconds apart

_OF_CHAINS = frozenset(
    (
        "numRecordsIn", "numRecordsOut", "busyTimeMs", "backPressuredTimeMs", "alignmentTimeMs", "alignmentHeldBlobs",
        "numBytesAcrossHosts", "currentInputWatermark", "currentOutputWatermark",
    )
)  # fmt: skip

Reports = dict[tuple[str, str], Report]  # by the label of an operator or chain, and the metric's name


class Totals(NamedTuple):
    """What a subtask has done since it started."""

    records_in: int = 0
    records_out: int = 0
    busy_ms: float = 0.0
    blocked_ms: float = 0.0
    aligned_ms: float = 0.0
    deferred_blobs: int = 0
    bytes_out: int = 0
    watermark: int = MIN_TIMESTAMP
    crossed_bytes: int = 0
    bytes_in: int = 0


class Rates(NamedTuple):
    """What a subtask does per second, over the last seconds. The three times add up to 1,000 ms."""

    records_in: float = 0.0
    records_out: float = 0.0
    bytes_out: float = 0.0
    busy_ms: float = 0.0
    blocked_ms: float = 0.0
    idle_ms: float = 1000.0
    bytes_in: float = 0.0


class _Sample(NamedTuple):
    at: float
    totals: dict[SubtaskId, Totals]


class JobMetrics:
    """The latest report of every subtask. The job's thread adds reports, any thread reads them.

    Attributes:
        labels: The label of each operator, by its id.
    """

    def __init__(self, graph: JobGraph, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.labels = _labels(graph)
        self._chains: dict[int, str] = {}
        self.change_graph(graph)

    def change_graph(self, graph: JobGraph) -> None:
        """Start with the subtasks of another graph of the same operators."""
        self._reported_at = self._clock.monotonic()
        self._samples: deque[_Sample] = deque([_Sample(self._reported_at, {})], _SAMPLES + 1)
        self._accumulators: dict[SubtaskId, dict[str, Any]] = {}
        self._chains = self._chains | _chain_labels(graph)  # a reader may still use the graph before
        self._restarted_at: dict[SubtaskId, float] = {}
        self._totals: dict[SubtaskId, Totals] = {}
        self._reports: dict[SubtaskId, Reports] = {}

    def restart(self, subtasks: Iterable[SubtaskId]) -> None:
        """Forget the reports of subtasks that restart. Their rates are taken over the time since."""
        now = self._clock.monotonic()
        for subtask in subtasks:
            self._restarted_at[subtask] = now
            self._totals.pop(subtask, None)
            self._reports.pop(subtask, None)
            self._accumulators.pop(subtask, None)

    def add(self, acks: Iterable[Ack]) -> None:
        """Add the reports of one epoch."""
        for ack in acks:
            subtask = SubtaskId(ack.vertex, ack.subtask)
            before, delays = self._totals.get(subtask, Totals()), ack.delays()
            totals = Totals(
                before.records_in + ack.records_in,
                before.records_out + ack.records_out,
                before.busy_ms + ack.busy_ms,
                before.blocked_ms + delays.blocked_ms,
                before.aligned_ms + delays.aligned_ms,
                before.deferred_blobs + delays.deferred_blobs,
                before.bytes_out + ack.bytes_out,
                ack.watermark,
                before.crossed_bytes + ack.crossed_bytes,
                before.bytes_in + ack.bytes_in,
            )
            self._totals[subtask] = totals
            own = {(self.labels[operator], name): report for (operator, name), report in ack.metrics.items()}
            self._reports[subtask] = own | self._of_chain(self._chains[ack.vertex], totals, ack)
            if ack.accumulators:
                self._accumulators[subtask] = ack.accumulators
        self._reported_at = now = self._clock.monotonic()
        if now - self._samples[-1].at >= _SAMPLE_S:  # after this epoch's reports were added
            self._samples.append(_Sample(now, dict(self._totals)))

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

    def totals(self, subtask: SubtaskId) -> Totals:
        """Return what a subtask has done since it started. Thread-safe."""
        return self._totals.get(subtask, Totals())

    def rates(self, subtask: SubtaskId) -> Rates:
        """Return what a subtask does per second. Thread-safe.

        The time since the last report does not count: what the subtasks did in it is not known, and is not idle time.
        """
        restarted_at = self._restarted_at.get(subtask)
        until, totals, samples = self._reported_at, self.totals(subtask), list(self._samples)
        if self._clock.monotonic() - until >= _SILENCE_S:
            return Rates()
        if restarted_at is not None:  # samples from before have the totals of another attempt
            samples = [_Sample(restarted_at, {}), *(each for each in samples if each.at > restarted_at)]
        earlier = [each for each in samples if each.at < until] or samples[:1]
        since = next((each for each in earlier if until - each.at <= _SAMPLE_S * _SAMPLES), earlier[-1])
        seconds = max(until - since.at, _SAMPLE_S / 10)
        before = since.totals.get(subtask, Totals())
        if before.records_in > totals.records_in or before.busy_ms > totals.busy_ms:
            before = Totals()  # the subtask restarts at this moment
        busy = min((totals.busy_ms - before.busy_ms) / seconds, 1000.0)
        blocked = min(max(totals.blocked_ms - before.blocked_ms, 0.0) / seconds, 1000.0 - busy)
        return Rates(
            (totals.records_in - before.records_in) / seconds,
            (totals.records_out - before.records_out) / seconds,
            (totals.bytes_out - before.bytes_out) / seconds,
            busy,
            blocked,
            1000.0 - busy - blocked,
            (totals.bytes_in - before.bytes_in) / seconds,
        )

    def accumulators(self, subtask: SubtaskId) -> dict[str, Any]:
        """Return the latest accumulators of a subtask, by name. Thread-safe."""
        return self._accumulators.get(subtask, {})

    def of_subtask(self, subtask: SubtaskId) -> dict[str, Any]:
        """Return the metrics of a subtask under Flink's names. Thread-safe.

        A metric of the whole chain has its own name, and a metric of an operator follows the operator's name.
        """
        chain = self._chains[subtask.vertex]
        found: dict[str, Any] = {}
        for (label, name), report in self.reports(subtask).items():
            if label != chain or name not in _OF_CHAINS:  # an operator that is a chain alone has the same label
                found |= flattened(f"{label}.{name}", report.values)
        return found | self.of_chain(subtask)

    def reports(self, subtask: SubtaskId) -> Reports:
        """Return the latest reports of a subtask, by the label of an operator or chain and by name. Thread-safe."""
        return self._reports.get(subtask, {})

    def of_chain(self, subtask: SubtaskId) -> dict[str, Any]:
        """Return the metrics of the whole chain of a subtask, under Flink's names. Thread-safe."""
        chain = self._chains[subtask.vertex]
        found: dict[str, Any] = {}
        for (label, name), report in self.reports(subtask).items():
            if label == chain and name in _OF_CHAINS:
                found |= flattened(name, report.values)
        totals, rates = self.totals(subtask), self.rates(subtask)
        return found | {
            "numBytesIn": totals.bytes_in,
            "numBytesOut": totals.bytes_out,
            "numRecordsInPerSecond": round(rates.records_in, 3),
            "numRecordsOutPerSecond": round(rates.records_out, 3),
            "numBytesInPerSecond": round(rates.bytes_in, 3),
            "numBytesOutPerSecond": round(rates.bytes_out, 3),
            "busyTimeMsPerSecond": round(rates.busy_ms, 3),
            "backPressuredTimeMsPerSecond": round(rates.blocked_ms, 3),
            "idleTimeMsPerSecond": round(rates.idle_ms, 3),
            "accumulateBusyTimeMs": round(totals.busy_ms, 3),
            "accumulateBackPressuredTimeMs": round(totals.blocked_ms, 3),
        }

    @staticmethod
    def _of_chain(label: str, totals: Totals, ack: Ack) -> Reports:
        return {
            (label, "numRecordsIn"): Report("counter", {"": totals.records_in}),
            (label, "numRecordsOut"): Report("counter", {"": totals.records_out}),
            (label, "busyTimeMs"): Report("counter", {"": round(totals.busy_ms, 3)}),
            (label, "backPressuredTimeMs"): Report("counter", {"": round(totals.blocked_ms, 3)}),
            (label, "alignmentTimeMs"): Report("counter", {"": round(totals.aligned_ms, 3)}),
            (label, "alignmentHeldBlobs"): Report("counter", {"": totals.deferred_blobs}),
            (label, "numBytesAcrossHosts"): Report("counter", {"": totals.crossed_bytes}),
            (label, "currentInputWatermark"): Report("lowest", {"": ack.watermark}),
            (label, "currentOutputWatermark"): Report("lowest", {"": ack.output_watermark}),
        }


def _labels(graph: JobGraph) -> Mapping[str, str]:
    """Return the label of each operator: its name, with its uid or the start of its id if several share the name."""
    operators = [operator for vertex in graph.vertices for operator in vertex.operators]
    often = Counter(operator.name for operator in operators)
    return {o.id: o.name if often[o.name] == 1 else f"{o.name} ({o.uid or o.id[:8]})" for o in operators}


def _chain_labels(graph: JobGraph) -> dict[int, str]:
    often = Counter(vertex.name for vertex in graph.vertices)
    return {v.id: v.name if often[v.name] == 1 else f"{v.name} [{v.id}]" for v in graph.vertices}
