"""What a slot answers to the task that asks for an epoch of a subtask, and the answers that it keeps for a repetition.

Spark may run a task again, and a subtask runs each epoch once: the second task gets the answer of the first.
"""

from __future__ import annotations

import pickle
from typing import NamedTuple

from ekorn.errors import DeploymentError
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link
from ekorn.operators.epoch import Ack, OutputPart
from ekorn.slot.spool import Spool, StoredMessage, WaitingBlobs
from ekorn.slot_protocol.task_messages import ACK, FAILED, OUTPUT
from ekorn.subtask.outbox import Emitted
from ekorn.subtask.wire.frames import Blob
from ekorn.types.by_value import dumps

__all__ = ["AskedEpoch", "AskingTask", "KeptAnswers", "TaskAnswer", "TaskGone", "picklable", "with_traffic"]


class AskedEpoch(NamedTuple):
    """An epoch that a task asked for. A later attempt's epochs are later, whatever their numbers."""

    attempt: int
    epoch: int


class TaskAnswer:
    """The messages that answer a task, in a spool."""

    def __init__(self, asked: AskedEpoch, spool: Spool) -> None:
        self.asked = asked
        self.messages: list[StoredMessage] = []
        self._spool = spool

    def add(self, item: Emitted | Ack) -> None:
        """Add something that leaves the subtask."""
        self.messages.append(self._spool.add(*_encoded(item)))

    def add_failure(self, pickled_error: bytes) -> None:
        """Add the last message. It stays in memory: the failure may be that of the disk."""
        message = FAILED + pickled_error
        self.messages.append(StoredMessage(message, 0, len(message)))

    def close(self) -> None:
        """Give back the memory of the messages; their disk space is free once nothing refers to them."""
        self._spool.close()


class KeptAnswers:
    """The last answer of each subtask."""

    def __init__(self) -> None:
        self._answers: dict[SubtaskId, TaskAnswer] = {}

    def find(self, subtask: SubtaskId, asked: AskedEpoch) -> TaskAnswer | None:
        """Return the answer to the first task that asked for an epoch; None if none did."""
        answer = self._answers.get(subtask)
        return answer if answer is not None and answer.asked == asked else None

    def keep(self, subtask: SubtaskId, answer: TaskAnswer) -> None:
        """Keep an answer in place of the one before. A late task of an older epoch was refused: that is not kept."""
        before = self._answers.get(subtask)
        if before is not None and before.asked >= answer.asked:
            answer.close()
            return
        self._answers[subtask] = answer
        if before is not None:
            before.close()

    def forget(self) -> None:
        """Forget all answers: an attempt begins, and no task of an earlier one gets an answer any more."""
        for answer in self._answers.values():
            answer.close()
        self._answers.clear()


class TaskGone(EOFError):
    """The task that asked for an epoch no longer takes what the subtask emits."""


class AskingTask:
    """The task that asked for an epoch, which takes what the subtask emits at once."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.gone: TaskGone | None = None  # set when the connection has failed

    def send(self, item: Emitted | Ack) -> None:
        """Send something that leaves the subtask.

        Raises:
            TaskGone: The connection has failed.
        """
        try:
            self._link.send(*_encoded(item))
        except OSError as error:
            # A subtask's own OSErrors may be about files: remember that this one is not.
            self.gone = TaskGone("the task that asked for the epoch is gone")
            raise self.gone from error


def with_traffic(item: Emitted | Ack, link: Link, blobs: WaitingBlobs) -> Emitted | Ack:
    """Fill in the acknowledgement of an epoch how many bytes its task carried between hosts."""
    if isinstance(item, Ack) and link.crosses_hosts:
        item.crossed_bytes = sum(blob.size_bytes for blob in blobs) + item.bytes_out
    return item


def _encoded(item: Emitted | Ack) -> tuple[bytes, bytes | memoryview]:
    """Return the message for something that leaves a subtask, in two parts."""
    match item:
        case Ack():
            return ACK, dumps(item)
        case OutputPart():
            return OUTPUT, dumps(item)
        case Blob():
            return item.encode()


def picklable(error: BaseException) -> BaseException:
    """Return the error, or an error with its text if it does not survive pickling."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # the user's exception classes may do anything
        return DeploymentError(f"{type(error).__name__}: {error}")
    return error
