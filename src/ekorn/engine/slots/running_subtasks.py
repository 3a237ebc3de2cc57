"""The subtasks of a continuous job that run, and what they have reported. Pure.

An epoch of a continuous job is complete when all subtasks that run have acknowledged it. What a subtask reports counts
only if it was reported in the attempt in which the subtask was deployed last.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Collection
from typing import assert_never

from ekorn.engine.protocol import Failure
from ekorn.engine.subtask_outcome import add_output
from ekorn.errors import DeploymentError, SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import OutputPart
from ekorn.operators.mark import MarkAck
from ekorn.slot_protocol.slot_events import EpochAcknowledged, FlowEvent, OutputLeft, SubtaskFailed

__all__ = ["EpochAcks", "FlowFailures", "RunningSubtasks", "is_telling"]


class RunningSubtasks:
    """The attempt, the acknowledgements, the output and the failures of every subtask that runs.

    >>> running, only = RunningSubtasks(), SubtaskId(0, 0)
    >>> running.start({only}, attempt=1)
    >>> running.take(EpochAcknowledged(0, MarkAck(0, 0, epoch=7)))  # of the attempt before
    >>> running.have_acknowledged(7)
    False
    >>> running.take(EpochAcknowledged(1, MarkAck(0, 0, epoch=7, records_in=3)))
    >>> running.have_acknowledged(7), [ack.records_in for ack in running.take_acks(7)]
    (True, [3])

    Attributes:
        attempts: The attempt in which each subtask that runs was deployed.
        failures: The errors of subtasks that have failed.
        output_bytes: The size of the output that was reported and whose epoch has not ended.
    """

    def __init__(self) -> None:
        self.attempts: dict[SubtaskId, int] = {}
        self.failures = FlowFailures()
        self.output_bytes = 0
        self._acks = EpochAcks()
        self._parts: dict[SubtaskId, list[OutputPart]] = {}  # since the last acknowledgement of the subtask

    def start(self, subtasks: Collection[SubtaskId], attempt: int) -> None:
        """Note that subtasks run from now on."""
        self.attempts |= dict.fromkeys(subtasks, attempt)

    def set_aside(self, subtasks: Collection[SubtaskId]) -> frozenset[SubtaskId]:
        """Forget what subtasks have reported, and ignore what they still report; return those that ran."""
        ran = frozenset(self.attempts.keys() & subtasks)
        for subtask in ran:
            del self.attempts[subtask]
            self._parts.pop(subtask, None)
        self._acks.drop(subtasks)
        return ran

    def clear(self) -> None:
        """Forget everything: all subtasks restart."""
        self.attempts.clear()
        self.failures.clear()
        self.output_bytes = 0
        self._acks.clear()
        self._parts.clear()

    def take(self, event: FlowEvent) -> None:
        """Take what a subtask reports."""
        match event:
            case EpochAcknowledged(_, ack):
                subtask = SubtaskId(ack.vertex, ack.subtask)
                if self.attempts.get(subtask) == event.attempt:
                    add_output([ack], self._parts.pop(subtask, ()))
                    self._acks.add(ack)
            case OutputLeft(_, part):
                subtask = SubtaskId(part.vertex, part.subtask)
                if self.attempts.get(subtask) == event.attempt:
                    self._parts.setdefault(subtask, []).append(part)
                    self.output_bytes += part.size_bytes
            case SubtaskFailed(_, subtask, pickled):
                if self.attempts.get(subtask) == event.attempt:
                    self.failures.add(_error_of(subtask, pickled), {subtask})
            case _:
                assert_never(event)

    def have_acknowledged(self, epoch: int) -> bool:
        """Return whether all subtasks that run have acknowledged an epoch."""
        return self._acks.are_complete(epoch, self.attempts)

    def take_acks(self, epoch: int) -> list[MarkAck]:
        """Return one acknowledgement of each subtask that runs, with its output, for an epoch that is complete."""
        acks = self._acks.take(epoch, self.attempts)
        self.output_bytes = sum(part.size_bytes for parts in self._parts.values() for part in parts)
        return acks


def _error_of(subtask: SubtaskId, pickled: bytes) -> BaseException:
    """Unpickle the error of a subtask; whatever its class does then, the failure of the subtask is known."""
    try:
        error: BaseException = pickle.loads(pickled)
    except Exception as problem:
        return DeploymentError(f"{subtask} has failed, and its error cannot be read in the driver: {problem!r}")
    return error


def is_telling(error: BaseException) -> bool:
    """Return whether an error says what was wrong: a connection breaks when something else has failed."""
    return not isinstance(error, (SlotLostError, DeploymentError))


class FlowFailures:
    """The first telling error of every subtask that has failed, or of all of them together.

    >>> failures, one, other = FlowFailures(), SubtaskId(0, 0), SubtaskId(1, 0)
    >>> failures.add(DeploymentError("its task is gone"), {one})
    >>> failures.add(ValueError("no 42"), {other})
    >>> failures.failure.error, failures.failure.subtasks == {one, other}
    (ValueError('no 42'), True)
    >>> failures.forget({other})
    >>> failures.failure.subtasks
    frozenset({SubtaskId(vertex=0, subtask=0)})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[SubtaskId, BaseException] = {}
        self._of_all: BaseException | None = None  # after it the state of every subtask is unknown

    def add(self, error: BaseException, subtasks: Collection[SubtaskId] = ()) -> None:
        """Note an error of some subtasks; without any, of all of them."""
        with self._lock:
            if not subtasks and (self._of_all is None or not is_telling(self._of_all)):
                self._of_all = error
            for subtask in subtasks:
                if subtask not in self._errors or not is_telling(self._errors[subtask]):
                    self._errors[subtask] = error

    def forget(self, subtasks: Collection[SubtaskId]) -> None:
        """Forget the errors of subtasks that restart."""
        with self._lock:
            for subtask in subtasks:
                self._errors.pop(subtask, None)

    def clear(self) -> None:
        """Forget everything: all subtasks restart."""
        with self._lock:
            self._errors.clear()
            self._of_all = None

    @property
    def failure(self) -> Failure | None:
        """The most telling error, and all subtasks that have failed; None if nothing has."""
        with self._lock:
            errors = [*self._errors.values(), *([] if self._of_all is None else [self._of_all])]
            failed = frozenset(self._errors) if self._of_all is None else frozenset()
        if not errors:
            return None
        return Failure(next(filter(is_telling, errors), errors[0]), subtasks=failed)


class EpochAcks:
    """Acknowledgements by epoch and subtask.

    A failure in one region ends an epoch for the driver, while its marks go on in the other regions. What their
    subtasks acknowledge of it comes with their acknowledgements of the next epoch: no output is lost.

    >>> acks, only = EpochAcks(), SubtaskId(0, 0)
    >>> acks.add(MarkAck(0, 0, epoch=1, records_in=3))
    >>> acks.add(MarkAck(0, 0, epoch=2, records_in=4))
    >>> acks.are_complete(2, {only}), [ack.records_in for ack in acks.take(2, {only})]
    (True, [7])
    """

    def __init__(self) -> None:
        self._by_epoch: dict[int, dict[SubtaskId, MarkAck]] = {}

    def add(self, ack: MarkAck) -> None:
        """Add the acknowledgement of a subtask. Those of one subtask come in the order of the epochs."""
        self._by_epoch.setdefault(ack.epoch, {})[SubtaskId(ack.vertex, ack.subtask)] = ack

    def are_complete(self, epoch: int, subtasks: Collection[SubtaskId]) -> bool:
        """Return whether all of some subtasks have acknowledged an epoch."""
        return self._by_epoch.get(epoch, {}).keys() >= set(subtasks)

    def take(self, epoch: int, subtasks: Collection[SubtaskId]) -> list[MarkAck]:
        """Return one acknowledgement of each subtask for an epoch and all earlier ones, and forget these epochs."""
        ended = [self._by_epoch.pop(number) for number in sorted(self._by_epoch) if number <= epoch]
        taken: list[MarkAck] = []
        for subtask in sorted(subtasks):
            *earlier, last = [acks[subtask] for acks in ended if subtask in acks]
            for ack in reversed(earlier):
                _put_before(ack, last)
            taken.append(last)
        return taken

    def drop(self, subtasks: Collection[SubtaskId]) -> None:
        """Forget what subtasks have acknowledged: they restart, and do it again."""
        for acks in self._by_epoch.values():
            for subtask in subtasks:
                acks.pop(subtask, None)

    def clear(self) -> None:
        """Forget everything."""
        self._by_epoch.clear()


def _put_before(earlier: MarkAck, ack: MarkAck) -> None:
    """Add what a subtask did in an earlier epoch to its acknowledgement of a later one."""
    ack.records_in += earlier.records_in
    ack.records_out += earlier.records_out
    ack.busy_ms += earlier.busy_ms
    ack.blocked_ms += earlier.blocked_ms
    ack.aligned_ms += earlier.aligned_ms
    ack.deferred_blobs += earlier.deferred_blobs
    ack.bytes_in += earlier.bytes_in
    ack.bytes_out += earlier.bytes_out
    ack.crossed_bytes += earlier.crossed_bytes
    ack.output_bytes += earlier.output_bytes
    ack.lines = earlier.lines + ack.lines
    ack.collected = earlier.collected + ack.collected
