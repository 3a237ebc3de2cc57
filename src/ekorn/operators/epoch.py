"""The order that a subtask receives for an epoch, and its acknowledgement. Plain values, sent between processes.

`SubtaskOrder` and `Ack` hold what both modes have in common. A job that runs in epochs uses `EpochOrder` and
`EpochAck`; a job that runs continuously uses those of `mark.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from ekorn.graph.addresses import SubtaskId
from ekorn.metrics.reports import Report
from ekorn.operators.sinks.collected_run import CollectedRun
from ekorn.types.time_bounds import MIN_TIMESTAMP

__all__ = ["Ack", "Delays", "EpochAck", "EpochOrder", "OutputPart", "SavepointOrder", "SubtaskOrder"]


@dataclass(frozen=True, slots=True)
class SavepointOrder:
    """Makes the checkpoint of an epoch a savepoint: the complete state, in a directory of its own.

    Attributes:
        directory: The address of the directory, in the form that `open_files` takes.
        native: Write the format of the state backend, instead of the one that all backends read.
    """

    directory: str
    native: bool = False


@dataclass(frozen=True, slots=True)
class SubtaskOrder:
    """The part of an order that does not depend on the mode of the job.

    Attributes:
        number: The number of the epoch. Numbers increase over all attempts of a job.
        checkpoint_id: The checkpoint that the epoch carries; None if it carries none.
        checkpoint_ms: When the checkpoint was triggered, by the driver's clock.
        settled: The subtasks that had finished in an earlier checkpoint. They take no snapshot.
        group_watermarks: The lowest watermark of each alignment group.
        savepoint: Makes the checkpoint a savepoint.
        savepoint_apart: The checkpoint is a savepoint, and the slot has received its `SavepointOrder` already.
        drain: The sources end now, even if there is more to read.
    """

    number: int
    checkpoint_id: int | None = None
    checkpoint_ms: int | None = None
    settled: frozenset[SubtaskId] = frozenset()
    group_watermarks: dict[str, int] = field(default_factory=dict)
    savepoint: SavepointOrder | None = None
    savepoint_apart: bool = False
    drain: bool = False

    def without_address(self) -> Self:
        """Return the order without the savepoint's address: its credentials must not pass through Spark."""
        return self if self.savepoint is None else replace(self, savepoint=None, savepoint_apart=True)


@dataclass(frozen=True, slots=True)
class EpochOrder(SubtaskOrder):
    """The order of one pass of input through the job graph.

    Attributes:
        max_records: The most records that a source subtask reads.
        max_source_ms: The longest time that a source subtask reads.
        max_source_bytes: The most bytes that a source subtask reads.
        open_loops: The feedback loops that a subtask keeps open; None if that is not known yet.
    """

    max_records: int = 1 << 30
    max_source_ms: int = 1 << 30
    max_source_bytes: int = 1 << 62
    open_loops: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class OutputPart:
    """Printed lines and collected records that a subtask sends to the driver before its acknowledgement.

    Attributes:
        number: The position among the parts of the subtask's epoch. Spark may change the order of parts.
    """

    vertex: int
    subtask: int
    number: int
    lines: list[str]
    collected: list[CollectedRun]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.lines)) + sum(run.size_bytes for run in self.collected)


class Delays(NamedTuple):
    """The time in which a subtask could not process its input.

    Attributes:
        blocked_ms: How long its output was full.
        aligned_ms: How long it waited for the marks of all channels.
        deferred_blobs: How many blobs waited for these marks.
    """

    blocked_ms: float = 0.0
    aligned_ms: float = 0.0
    deferred_blobs: int = 0


_NO_DELAYS = Delays()


@dataclass(slots=True)
class Ack:
    """The part of an acknowledgement that does not depend on the mode of the job.

    Attributes:
        backlog: A source has more to read now.
        ended_ms: When the epoch ended in this subtask, by the clock of the slot's machine.
        next_timer_ms: The earliest processing time at which an operator has something to do.
        group_watermarks: The watermark of a source in each of its alignment groups.
        crossed_bytes: The size of the blobs that went from host to host.
        output_bytes: The size of printed lines and collected records.
        collected: The records for `execute_and_collect`.
        metrics: The reports of the subtask's metrics, by operator id and name.
    """

    vertex: int
    subtask: int
    epoch: int
    records_in: int = 0
    records_out: int = 0
    backlog: bool = False
    finished: bool = False
    watermark: int = MIN_TIMESTAMP
    output_watermark: int = MIN_TIMESTAMP
    ended_ms: int = 0
    next_timer_ms: int | None = None
    group_watermarks: dict[str, int] = field(default_factory=dict)
    busy_ms: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    crossed_bytes: int = 0
    output_bytes: int = 0
    lines: list[str] = field(default_factory=list)
    collected: list[CollectedRun] = field(default_factory=list)
    accumulators: dict[str, Any] = field(default_factory=dict)
    metrics: dict[tuple[str, str], Report] = field(default_factory=dict)

    def delays(self) -> Delays:
        """Return the time in which the subtask could not process its input.

        The result is empty in a mode that has no such time.
        """
        return _NO_DELAYS


@dataclass(slots=True)
class EpochAck(Ack):
    """The acknowledgement of one pass of input.

    Attributes:
        open_loops: The feedback loops that this subtask keeps open.
    """

    open_loops: frozenset[int] = frozenset()
