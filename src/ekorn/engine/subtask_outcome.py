"""The outcome of one subtask's epoch, as it travels from the task that ran it to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass

from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import Ack, OutputPart


@dataclass(frozen=True, slots=True)
class PickledOutput:
    """A pickled `OutputPart`, on its way to the driver ahead of the outcome."""

    pickled: bytes


@dataclass(frozen=True, slots=True)
class SubtaskOutcome:
    """The last answer of a slot about an epoch: a pickled `Ack` if it succeeded, a pickled exception if it failed."""

    succeeded: bool
    pickled: bytes


@dataclass(frozen=True, slots=True)
class SubtaskFailure:
    """The failed epoch of one subtask. The error stays pickled: only the driver may know its class."""

    subtask: SubtaskId
    pickled_error: bytes

    @property
    def error(self) -> BaseException:
        """Unpickle the exception that was raised."""
        error: BaseException = pickle.loads(self.pickled_error)
        return error


def add_output(acks: Iterable[Ack], parts: Iterable[OutputPart]) -> None:
    """Put the output that left ahead of an acknowledgement before the output that came with it."""
    by_subtask: dict[SubtaskId, list[OutputPart]] = {}
    for part in parts:
        by_subtask.setdefault(SubtaskId(part.vertex, part.subtask), []).append(part)
    for ack in acks:
        ahead = sorted(by_subtask.get(SubtaskId(ack.vertex, ack.subtask), ()), key=lambda part: part.number)
        if ahead:
            ack.lines = [line for part in ahead for line in part.lines] + ack.lines
            ack.collected = [run for part in ahead for run in part.collected] + ack.collected
