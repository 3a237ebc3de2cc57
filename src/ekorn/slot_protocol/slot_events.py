"""The events that a slot reports to the driver while an attempt runs."""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.errors import SlotMemoryError, UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import OutputPart
from ekorn.operators.mark import MarkAck
from ekorn.state.snapshots import SubtaskSnapshot


@dataclass(frozen=True)
class SnapshotWritten:
    """A subtask's state files of a checkpoint are durable."""

    checkpoint_id: int
    attempt: int
    snapshot: SubtaskSnapshot


@dataclass(frozen=True)
class SnapshotNotWritten:
    """A subtask's state could not be captured, or its files could not be written.

    Attributes:
        error: The exception of the user's `snapshot_state`, if it declined the checkpoint.
    """

    checkpoint_id: int
    attempt: int
    subtask: SubtaskId
    why: str
    error: UserFunctionError | None = None


@dataclass(frozen=True, slots=True)
class OperatorHint:
    """An operator runs, and probably not as its author wanted. The driver shows it once for all subtasks.

    Attributes:
        about: The subject: an operator gives at most one hint about it.
    """

    attempt: int
    operator_id: str
    operator_name: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class SlotEnds:
    """The slot ends itself: its last event. Its handle in the driver takes it.

    Attributes:
        hints: The hints of the slot, because this event overtakes those that wait.
    """

    error: SlotMemoryError
    hints: tuple[OperatorHint, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotActivity:
    """What a slot is doing: the content of its heartbeats.

    Attributes:
        epoch: The newest epoch that a task has asked for; -1 before the first.
        answered: The subtasks whose part of that epoch has ended.
        messages: How many messages of epochs the slot has received and sent so far.
        in_user_code: Whether a subtask runs now. A slot that waits for a task to take a blob is not in user code.
    """

    epoch: int
    answered: frozenset[SubtaskId]
    messages: int
    in_user_code: bool


@dataclass(frozen=True, slots=True)
class EpochAcknowledged:
    """A subtask that runs continuously has ended its part of an epoch."""

    attempt: int
    ack: MarkAck


@dataclass(frozen=True, slots=True)
class OutputLeft:
    """A part of the driver's output has left a subtask that runs continuously."""

    attempt: int
    part: OutputPart


@dataclass(frozen=True, slots=True)
class SubtaskFailed:
    """A subtask that runs continuously has failed. The error stays pickled: only the driver may know its class."""

    attempt: int
    subtask: SubtaskId
    pickled_error: bytes


@dataclass(frozen=True, slots=True)
class UnreadableEvent:
    """Stands in the driver for an event that could not be unpickled there."""

    slot: int
    why: str


SlotEvent = SnapshotWritten | SnapshotNotWritten | OperatorHint  # for the job loop
FlowEvent = EpochAcknowledged | OutputLeft | SubtaskFailed  # for the engine of a continuous job
