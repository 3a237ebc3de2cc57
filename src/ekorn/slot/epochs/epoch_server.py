"""Serves Spark tasks that ask for an epoch of a subtask: receives the input, runs the epoch and sends the output."""

from __future__ import annotations

from collections.abc import Collection

from ekorn.errors import DamagedBlob, EkornError, SpoolError
from ekorn.faults import point
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link
from ekorn.operators.epoch import Ack
from ekorn.slot.epochs.task_answers import AskedEpoch, AskingTask, KeptAnswers, TaskAnswer, picklable, with_traffic
from ekorn.slot.garbage import SlotGarbage
from ekorn.slot.host import SlotHost
from ekorn.slot.spool import WaitingBlobs
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import SlotActivity
from ekorn.slot_protocol.task_messages import FAILED, RunEpoch
from ekorn.subtask.outbox import Emitted
from ekorn.types.by_value import dumps

__all__ = ["EpochServer"]


class EpochServer:
    """Runs the epochs of a slot's subtasks, one at a time, each on the thread of the connection that asks for it.

    Args:
        host: The slot.
        garbage: Collects garbage between epochs.
    """

    def __init__(self, host: SlotHost, garbage: SlotGarbage) -> None:
        self._host = host
        self._garbage = garbage
        self._answers = KeptAnswers()  # for tasks that Spark may repeat
        self._sending: Link | None = None  # the connection to which the running subtask sends a blob
        self._epoch = -1  # the newest epoch; this field and the next three are what heartbeats report
        self._answered: frozenset[SubtaskId] = frozenset()  # the subtasks that have run it
        self._messages = 0
        self._in_user_code = False

    def begin(self, deployment: Deployment) -> None:
        """Do nothing: subtasks run when a task asks for it."""

    def end(self, only: Collection[SubtaskId] | None = None, *, in_order: bool) -> None:
        """Do nothing: between two epochs no subtask runs."""

    def forget_answers(self) -> None:
        """Forget the answers that are kept for repeated tasks: a new attempt begins."""
        self._answers.forget()

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Do nothing: a snapshot is whole at the end of its epoch."""

    def activity(self) -> SlotActivity:
        """Return what the slot is doing. Thread-safe."""
        return SlotActivity(self._epoch, self._answered, self._messages, self._in_user_code)

    def serve(self, request: RunEpoch, link: Link) -> None:
        """Run a subtask's epoch for a task."""
        blobs = WaitingBlobs(self._host.spool())
        try:
            refusal = self._receive_input(link, blobs)
            if refusal is not None:
                link.send(FAILED, dumps(refusal))
            elif request.repeatable:
                with self._host.user_code:
                    answer = self._repeatable_answer(link, request, blobs)
                for message in answer.messages:  # without the lock: a task that hangs does not hold up its repetition
                    link.send(message.read())
                    self._messages += 1
            else:
                self._run_once(link, request, blobs)
        finally:
            blobs.close()

    def _receive_input(self, link: Link, blobs: WaitingBlobs) -> EkornError | None:
        """Receive the blobs of an epoch; return the error if they could not be read or stored."""
        refusal: EkornError | None = None
        self._messages += 1
        while message := link.receive():
            self._messages += 1
            if refusal is None:
                try:
                    blobs.add(message)
                except (SpoolError, DamagedBlob) as error:
                    refusal = error  # the task sends all of its blobs before it takes an answer
        return refusal

    def _run_once(self, link: Link, request: RunEpoch, blobs: WaitingBlobs) -> None:
        task = AskingTask(link)

        def send(item: Emitted | Ack) -> None:
            self._send_to_task(task, link, item)

        with self._host.user_code:
            self._begin_epoch(request.order.number)
            try:
                self._in_user_code = True
                self._garbage.epoch_ended()
                point("epoch", self._host.slot)
                for item in self._host.run(request.subtask, request.attempt, request.order, blobs, send):
                    send(with_traffic(item, link, blobs))
            except Exception as error:  # travels to the driver through the task
                self._in_user_code = False
                if task.gone is not None:  # an error of the connection, although an operator has raised it
                    raise task.gone from error
                link.send(FAILED, dumps(picklable(error)))
            finally:
                self._in_user_code = False
            self._answered |= {request.subtask}

    def _repeatable_answer(self, link: Link, request: RunEpoch, blobs: WaitingBlobs) -> TaskAnswer:
        """Return the messages that answer a task: those of the first task that asked for this epoch, if one did."""
        asked = AskedEpoch(request.attempt, request.order.number)
        first = self._answers.find(request.subtask, asked)
        if first is not None:
            return first
        self._begin_epoch(request.order.number)
        answer = TaskAnswer(asked, self._host.spool())
        self._in_user_code = True
        try:
            self._garbage.epoch_ended()
            point("epoch", self._host.slot)
            for item in self._host.run(request.subtask, request.attempt, request.order, blobs, answer.add):
                answer.add(with_traffic(item, link, blobs))
        except Exception as error:  # travels to the driver through the task
            answer.add_failure(dumps(picklable(error)))
        finally:
            self._in_user_code = False
        self._answers.keep(request.subtask, answer)
        self._answered |= {request.subtask}
        return answer

    def _begin_epoch(self, number: int) -> None:
        if number > self._epoch:
            self._epoch = number
            self._answered = frozenset()

    def _send_to_task(self, task: AskingTask, link: Link, item: Emitted | Ack) -> None:
        """Send a blob, or the acknowledgement. This waits until the task takes it."""
        self._in_user_code, self._sending = False, link
        try:
            task.send(item)
        finally:
            self._sending = None
        self._messages += 1
        self._in_user_code = True

    def hang_up(self) -> None:
        """Release a subtask that waits until its task takes a blob: the epoch has failed. Thread-safe."""
        link = self._sending
        if link is not None:
            link.shut_down()
