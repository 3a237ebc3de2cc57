"""Runs one subtask of a slot continuously: performs the actions of its scheduler, and connects it to its tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, assert_never

from ekorn.columns.columns_type import has_columns
from ekorn.errors import DeploymentError
from ekorn.faults import point
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.channels import targets_of
from ekorn.graph.job_graph import Vertex
from ekorn.links.link import Link
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import OutputPart
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot.continuous.step_scheduler import (
    LONGEST_WAIT_S,
    EmitWatermarks,
    FireTimers,
    Flush,
    Poll,
    SubtaskScheduler,
    TakeInput,
    Wait,
)
from ekorn.slot.continuous.transport import Transport
from ekorn.slot.event_reports import Reports
from ekorn.slot.host import SlotHost
from ekorn.slot.spool import Spool, WaitingBlob
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import OutputLeft
from ekorn.slot_protocol.task_messages import Carries
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.continuous.continuous_subtask import NEVER
from ekorn.subtask.continuous.source import run_continuously
from ekorn.subtask.outbox import Emitted
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import Blob, Destination, ReceivedBlob

__all__ = ["OnFailure", "RunnerListener", "SubtaskRunner", "buffer_timeout_s"]

_POLL_RECORDS = 4096  # the most that a source reads in one step
_POLL_ROWS = 1 << 16  # the most that a source of columns reads: it costs as much for many rows as for few
_POLL_BYTES = 1 << 20
_POLL_MS = 5
_WORK = {
    Carries.INPUT: "brings the input",
    Carries.OUTPUT: "takes the output",
    Carries.BOTH: "brings the input and takes the output",
}


OnFailure = Callable[[SubtaskId, int, Exception], None]  # with the subtask and its attempt


class RunnerListener(Protocol):
    """What a runner tells its mailbox."""

    @property
    def reports(self) -> Reports:
        """The events of the slot for the driver."""

    def wake(self) -> None:
        """Note that the subtask may have something to do. Thread-safe."""

    @property
    def failed(self) -> OnFailure:
        """Called when a connection of the subtask has failed, on any thread."""

    def acknowledge(self, subtask_id: SubtaskId, attempt: int, ack: MarkAck) -> None:
        """Report the end of an epoch."""


class SubtaskRunner:
    """A subtask of a slot, and its connections.

    Args:
        host: The slot.
        subtask_id: The subtask, which is open.
        deployment: The deployment of its attempt.
        mailbox: Takes what the runner has to tell.
    """

    def __init__(self, host: SlotHost, subtask_id: SubtaskId, deployment: Deployment, mailbox: RunnerListener) -> None:
        subtask = host.subtasks[subtask_id]
        environment = subtask.environment
        self.attempt = deployment.attempt
        self.transport = Transport(mailbox.wake, self._lost)
        self._services = _RunnerServices(host, subtask_id, deployment, mailbox, self.transport)
        self._subtask = run_continuously(subtask, self._services)
        self._scheduler = SubtaskScheduler(
            environment.graph.settings.auto_watermark_interval_ms / 1000,
            buffer_timeout_s(environment.vertex, deployment.buffer_timeout_ms),
        )
        self._clock = environment.clock
        self._poll_records = _POLL_ROWS if has_columns(environment.vertex.operators[0].output_type) else _POLL_RECORDS
        self._tasks = _needed_tasks(environment)
        self._is_attached = False  # all of these tasks have called
        self._driver_output = mailbox.reports if subtask.driver_output.is_used else None
        self._subtask_id = subtask_id
        self._mailbox = mailbox

    @property
    def due_at(self) -> float:
        """When a timer, a periodic watermark or a mark that overtakes is due, as of the last step."""
        return self._scheduler.due_at

    @property
    def messages(self) -> int:
        """The number of blobs that were received and sent."""
        return self.transport.messages

    @property
    def spilled_bytes(self) -> int:
        """The size of the deferred and recorded blobs on disk."""
        return self._services.spilled_bytes

    def attach(self, link: Link, carries: Carries) -> bool:
        """Use the connection of a task; return False if the subtask does not wait for such a task.

        The subtask runs when the last of its tasks has called.
        """
        if not self.transport.attach(link, carries):
            return False
        if self._tasks <= self.transport.attached:
            self._scheduler.start(self._clock.monotonic())
            self._is_attached = True
            self._mailbox.wake()
        return True

    def leave(self, *, in_order: bool) -> None:
        """End the connections: after all output if the subtask has finished `in_order`, else at once."""
        self._services.released()
        self.transport.finish() if in_order else self.transport.abort()

    def _lost(self, carried: Carries, error: Exception | None) -> None:
        task = f"the Spark task that {_WORK[carried]} of {self._subtask.subtask.environment.name}"
        why = f"{task} is gone" if error is None else f"{task} delivered input that the subtask cannot read: {error}"
        # A late loss belongs to the attempt of this connection, although the next one may be deployed already.
        self._mailbox.failed(self._subtask_id, self.attempt, DeploymentError(why))

    def give(self, blob: Blob) -> None:
        """Queue a blob that arrived. Thread-safe."""
        self._subtask.give(blob)

    def give_order(self, order: MarkOrder) -> None:
        """Queue the order of an epoch. Thread-safe."""
        self._subtask.give_order(order)

    def pause_reading(self) -> None:
        """Read nothing from the source until the next order. Thread-safe."""
        self._subtask.pause_reading()

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Stop recording blobs for a checkpoint that was aborted."""
        self._subtask.checkpoint_aborted(checkpoint_id)

    # ----------------------------------------------------------------------------------------------------- a step

    def step(self, now: float) -> float:
        """Run a step: what the clock has due, then at most one input or poll.

        Returns:
            How long the subtask has nothing to do; 0 if it has worked.
        """
        subtask, scheduler = self._subtask, self._scheduler
        transport, driver_output = self.transport, self._driver_output
        if not self._is_attached:
            return LONGEST_WAIT_S  # the call of the last task wakes the mailbox
        overtakes_in_s = subtask.handle_urgent()
        while True:
            output_is_full = transport.is_full or (driver_output is not None and driver_output.is_full)
            subtask.measure(now, output_is_full=output_is_full)
            timer_ms = subtask.next_timer_ms()
            action = scheduler.next(
                now,
                output_is_full=output_is_full,
                may_take=subtask.may_take,
                may_read=subtask.may_read,
                timer_in_s=NEVER if timer_ms is None else (timer_ms - self._clock.now_ms()) / 1000,
                overtakes_in_s=overtakes_in_s,
            )
            match action:
                case TakeInput(gathers, flushes):
                    subtask.gathers = gathers
                    subtask.take()
                    more_waits = subtask.has_input
                    if flushes and (more_waits or gathers):
                        subtask.flush()
                    scheduler.took(now, action, more_waits=more_waits)
                    return 0.0
                case Poll(flushes):
                    count = min(self._poll_records, subtask.step_size.records)
                    progress = subtask.poll(count, _POLL_MS, _POLL_BYTES)
                    if flushes and progress.backlog:
                        subtask.flush()
                    scheduler.polled(now, action, has_backlog=progress.backlog, has_finished=progress.finished)
                    if progress.backlog or progress.finished:
                        return 0.0
                case Wait(seconds):
                    return seconds
                case FireTimers():
                    subtask.advance_clock()
                    subtask.flush()
                case EmitWatermarks():
                    subtask.emit_periodic_watermarks()
                    subtask.flush()
                case Flush():
                    subtask.flush()
                case _:
                    assert_never(action)


class _RunnerServices:
    """What the slot does for the subtask: sends its output, stores its blobs, captures and writes its state."""

    def __init__(
        self,
        host: SlotHost,
        subtask_id: SubtaskId,
        deployment: Deployment,
        mailbox: RunnerListener,
        transport: Transport,
    ) -> None:
        self._host = host
        self._subtask_id = subtask_id
        self._attempt = deployment.attempt
        self._mailbox = mailbox
        self._transport = transport
        self._stored: Spool | None = None  # deferred and recorded blobs
        self._remote_targets = _remote_targets(deployment, subtask_id)
        self._remote_bytes = 0  # sent to these targets since the last acknowledgement

    @property
    def spilled_bytes(self) -> int:
        return 0 if self._stored is None else self._stored.spilled_bytes

    def send(self, item: Emitted) -> None:
        if isinstance(item, OutputPart):
            self._mailbox.reports.put(OutputLeft(self._attempt, item))
            return
        if self._remote_targets and Destination(item.exchange, item.target) in self._remote_targets:
            self._remote_bytes += item.size_bytes
        self._transport.send(item)

    def taken(self, blob: ReceivedBlob) -> None:
        self._transport.taken(blob.size_bytes)

    def defer(self, blob: ReceivedBlob) -> ReceivedBlob:
        if not isinstance(blob, Blob):
            return blob  # it was deferred until the last mark already, and is stored or was decoded
        point("ahead", self._host.slot)
        return self._store(blob)

    def record(self, blob: ReceivedBlob) -> ReceivedBlob:
        assert isinstance(blob, Blob), "a blob is recorded as it arrives"
        point("overtaken", self._host.slot)
        return self._store(blob)

    def _store(self, blob: Blob) -> WaitingBlob:
        if self._stored is None:
            self._stored = self._host.spool()
        return WaitingBlob(blob, self._stored.add(*blob.encode()))

    def released(self) -> None:
        stored, self._stored = self._stored, None
        if stored is not None:
            stored.close()

    def capture(self, subtask: Subtask, order: MarkOrder) -> CapturedSubtask | None:
        point("epoch", self._host.slot)
        return self._host.capture(self._subtask_id, order)

    def write(self, captured: CapturedSubtask) -> None:
        self._host.write(captured)

    def acknowledge(self, ack: MarkAck) -> None:
        ack.crossed_bytes, self._remote_bytes = self._remote_bytes, 0
        ack.crossed_bytes += self._transport.crossed_bytes(ack.bytes_out)
        point("acknowledge", self._host.slot)
        self._mailbox.acknowledge(self._subtask_id, self._attempt, ack)


def _needed_tasks(environment: SubtaskEnvironment) -> frozenset[Carries]:
    """Return the tasks of a subtask. One without inputs and outputs has a task too: Spark runs the whole job."""
    graph, vertex = environment.graph, environment.vertex
    needs = {Carries.INPUT} if graph.inputs_of(vertex.id) else set()
    return frozenset(needs | {Carries.OUTPUT} if graph.outputs_of(vertex.id) or not needs else needs)


def _remote_targets(deployment: Deployment, sender: SubtaskId) -> frozenset[Destination]:
    """Return the targets of a subtask on other hosts. Tasks run beside their slots if Spark has room for them."""
    graph, hosts = deployment.graph, deployment.slot_hosts
    if not hosts:
        return frozenset()
    vertex = graph.vertices[sender.vertex]
    own = hosts[graph.slot_of(vertex, sender.subtask)]
    return frozenset(
        Destination(exchange.id, target)
        for exchange in graph.outputs_of(vertex.id)
        for target in targets_of(exchange, vertex, graph.vertices[exchange.target], sender.subtask)
        if hosts[graph.slot_of(graph.vertices[exchange.target], target)] != own
    )


def buffer_timeout_s(vertex: Vertex, default_ms: int) -> float | None:
    """Return how long output may wait while more is coming; None: until a blob is full."""
    set_ms = [operator.buffer_timeout_ms for operator in vertex.operators if operator.buffer_timeout_ms is not None]
    timeout_ms = set_ms[-1] if set_ms else default_ms
    return None if timeout_ms < 0 else timeout_ms / 1000
