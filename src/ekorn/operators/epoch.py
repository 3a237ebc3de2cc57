"""The order that a subtask receives before an epoch, and its answer. Plain values, sent between processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ekorn.graph.addresses import SubtaskId
from ekorn.metrics.reports import Report
from ekorn.operators.sinks.collected_run import CollectedRun
from ekorn.types.time_bounds import MIN_TIMESTAMP


@dataclass(frozen=True, slots=True)
class SavepointOrder:
    """Makes the checkpoint of an epoch a savepoint: the complete state, in a directory of its own."""

    directory: str  # in the form `open_files` takes
    native: bool = False  # in the backend's own format; else in the format that all backends read


@dataclass(frozen=True, slots=True)
class EpochOrder:
    """One epoch: how much sources may read, and the checkpoint that the epoch carries, if any."""

    number: int
    max_records: int = 1 << 30
    max_source_ms: int = 1 << 30
    max_source_bytes: int = 1 << 62
    checkpoint_id: int | None = None
    checkpoint_ms: int | None = None  # when the checkpoint was triggered
    settled: frozenset[SubtaskId] = frozenset()  # subtasks finished in an earlier checkpoint
    group_watermarks: dict[str, int] = field(default_factory=dict)  # lowest, by alignment group
    open_loops: frozenset[int] | None = None  # feedback loops that subtasks keep open; None: not known yet
    savepoint: SavepointOrder | None = None
    savepoint_apart: bool = False  # the checkpoint is a savepoint, and the slot has its `SavepointOrder` already
    overtakes_after_ms: int | None = None  # where jobs run continuously: when the mark overtakes blobs; None: never
    drain: bool = False  # sources end now, even if there is more to read
    # Where jobs run continuously: what happens behind the mark, until the next order.
    holds_sources: bool = False  # sources read nothing
    suspends: bool = False  # nor does anything else happen: timers do not fire, answers to requests wait

    def without_address(self) -> EpochOrder:
        """Return the order as Spark's tasks carry it: an address with credentials must not pass through Spark."""
        return self if self.savepoint is None else replace(self, savepoint=None, savepoint_apart=True)


@dataclass(frozen=True, slots=True)
class OutputPart:
    """Printed lines and collected records that a subtask sends to the driver ahead of its acknowledgement."""

    vertex: int
    subtask: int
    number: int  # parts of a subtask's epoch are numbered, since Spark may change their order
    lines: list[str]
    collected: list[CollectedRun]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.lines)) + sum(run.size_bytes for run in self.collected)


@dataclass(slots=True)
class Ack:
    """One subtask's answer after an epoch."""

    vertex: int
    subtask: int
    epoch: int
    records_in: int = 0
    records_out: int = 0
    backlog: bool = False
    finished: bool = False
    watermark: int = MIN_TIMESTAMP
    output_watermark: int = MIN_TIMESTAMP
    ended_ms: int = 0  # when the epoch ended here, by the clock of the slot's machine
    next_timer_ms: int | None = None
    group_watermarks: dict[str, int] = field(default_factory=dict)  # of a source, by alignment group
    open_loops: frozenset[int] = frozenset()  # feedback loops that this subtask keeps open
    busy_ms: float = 0.0
    blocked_ms: float = 0.0  # where jobs run continuously: how long the subtask waited because its output was full
    aligned_ms: float = 0.0  # and how long from the first mark of the epoch to the last
    held_blobs: int = 0  # and how many blobs waited meanwhile
    kept_bytes: int = 0  # and the blobs that are not processed, beside those that the queue of the input holds
    bytes_out: int = 0
    crossed_bytes: int = 0  # of blobs from host to host: between task and slot, and between tasks of continuous jobs
    output_bytes: int = 0  # of lines and collected records
    lines: list[str] = field(default_factory=list)
    collected: list[CollectedRun] = field(default_factory=list)  # for execute_and_collect
    accumulators: dict[str, Any] = field(default_factory=dict)
    metrics: dict[tuple[str, str], Report] = field(default_factory=dict)  # by operator id and name
