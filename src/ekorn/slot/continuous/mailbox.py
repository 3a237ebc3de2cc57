"""Runs the subtasks of a slot continuously: one thread that takes turns between them.

In each round every subtask gets steps: an order, a blob or a poll of its source; and its timers and periodic watermarks
when they are due. It gets one step after another for some time, unless an order, a request or the clock of another
subtask waits. A subtask whose output waits to be sent gets none, so that no slot ever waits for another one in a step.
If a round found nothing to do, the thread sleeps until something arrives or is due.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from ekorn.clock import Clock
from ekorn.errors import DeploymentError, SlotLostError
from ekorn.faults import point
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.channels import targets_of
from ekorn.graph.job_graph import Vertex
from ekorn.links.link import Link
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import Ack, EpochOrder, OutputPart
from ekorn.slot.continuous.rounds import Rounds
from ekorn.slot.continuous.transport import Transport
from ekorn.slot.event_reports import Reports
from ekorn.slot.host import SlotHost
from ekorn.slot.spool import Spool
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot.waiting_blobs import WaitingBlob
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import EpochAcknowledged, OutputLeft
from ekorn.slot_protocol.task_messages import Attach, Carries
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.continuous.continuous_subtask import NEVER, ContinuousSubtask
from ekorn.subtask.continuous.source import run_continuously
from ekorn.subtask.outbox import Emitted
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import Blob, Destination, ReceivedBlob

__all__ = ["Desk", "Mailbox", "buffer_timeout_s"]

_POLL_RECORDS = 4096  # that a source reads in one step
_POLL_BYTES = 1 << 20
_POLL_MS = 5  # how long a source reads in one step
_POLL_PAUSE_S = 0.004  # before a source without a backlog is asked again: its records of that time leave together
_GATHER_S = 0.001  # after output has left: what follows within it leaves together, since Spark works by the blob
_CLOCK_S = 0.001  # between two looks at an operator that has something to do as soon as possible
_LONGEST_SLEEP_S = 0.5
_WORK = {
    Carries.INPUT: "brings the input",
    Carries.OUTPUT: "takes the output",
    Carries.BOTH: "brings the input and takes the output",
}
OnFailure = Callable[[SubtaskId, int, Exception], None]  # with the attempt of the subtask


class Mailbox:
    """The subtasks of one slot in one attempt, and the thread that runs them."""

    def __init__(self, host: SlotHost, turn: UserCodeLock, clock: Clock, reports: Reports) -> None:
        self._host = host
        self._turn = turn
        self._clock = clock
        self.reports = reports
        self._wake = threading.Event()
        self._desks: dict[SubtaskId, Desk] = {}
        self._thread: threading.Thread | None = None
        self._ended = False
        self._past_messages = 0
        self._rounds = Rounds(turn, clock)
        self.failed: OnFailure = lambda subtask, attempt, error: None
        self.in_step = False
        self.epoch = -1  # the newest that a subtask has ended
        self.answered: frozenset[SubtaskId] = frozenset()  # the subtasks that have ended it

    @property
    def messages(self) -> int:
        """How many blobs have been received and sent."""
        return self._past_messages + sum(desk.messages for desk in list(self._desks.values()))

    def begin(self, deployment: Deployment) -> None:
        """Run the subtasks of a deployment from now on, each as soon as its tasks have called.

        Called with the lock on user code.
        """
        desks: dict[SubtaskId, Desk] = {}  # in the order of the graph
        for of in self._host.subtasks:
            if of in self._desks:
                desks[of] = self._desks[of]  # its region goes on
            elif deployment.only is None or of in deployment.only:
                desks[of] = Desk(self, self._host, of, deployment)
        self._desks = desks
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mailbox", daemon=True)
            self._thread.start()

    def end(self, only: Collection[SubtaskId] | None = None, *, in_order: bool) -> None:
        """Run no subtask any more, or some of them. Called with the lock on user code.

        Args:
            only: The subtasks; None: all of them.
            in_order: The subtasks have finished: their tasks get what waits, and end. Else their connections break.
        """
        ended = [desk for of, desk in self._desks.items() if only is None or of in only]
        self._desks = {} if only is None else {of: desk for of, desk in self._desks.items() if of not in only}
        for desk in ended:
            self._past_messages += desk.messages
            desk.leave(in_order=in_order)

    def stop(self) -> None:
        """End the thread after its step."""
        self._ended = True
        self._wake.set()

    def serve(self, request: Attach, link: Link) -> None:
        """Carry blobs between a subtask and one of its tasks, until the connection ends.

        Raises:
            SlotLostError: The slot does not run the subtask, or such a task has called for it already.
        """
        desk = self._desks.get(request.subtask)
        if desk is None or desk.attempt != request.attempt or not desk.attach(link, request.carries):
            why = f"it waits for no task of attempt {request.attempt} for {request.subtask}"
            raise SlotLostError(self._host.slot, why)
        desk.transport.receive_all(link, desk.give_blob)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Record no more blobs for a checkpoint that was aborted. Called with the lock on user code."""
        for desk in self._desks.values():
            desk.checkpoint_aborted(checkpoint_id)

    def order(self, order: EpochOrder) -> None:
        """Let the sources put the mark of an epoch into the stream, and other subtasks let it overtake. Thread-safe."""
        for desk in self._desks.values():
            desk.give_order(order)
        self._rounds.order_given()
        self.wake()

    def pause_sources(self) -> None:
        """Let the sources read nothing until the next order. Thread-safe."""
        for desk in self._desks.values():
            desk.pause_source()

    def wake(self) -> None:
        """Let the thread look for something to do. Thread-safe."""
        self._wake.set()

    def acknowledge(self, subtask_id: SubtaskId, attempt: int, ack: Ack) -> None:
        """Report the end of a subtask's epoch to the driver."""
        if ack.epoch > self.epoch:
            self.epoch, self.answered = ack.epoch, frozenset()
        if ack.epoch == self.epoch:
            self.answered |= {subtask_id}
        self.reports.put(EpochAcknowledged(attempt, ack))

    def put_out(self, attempt: int, part: OutputPart) -> None:
        """Send a part of a subtask's output to the driver."""
        self.reports.put(OutputLeft(attempt, part))

    # -------------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        self._host.thread = threading.get_ident()
        while not self._ended:
            self._wake.clear()
            self._turn.acquire_after_requests()
            pause_s = _LONGEST_SLEEP_S
            try:
                pause_s = self._round()
            finally:
                self.in_step = False
                self._host.running = None
                self._turn.release(resumes=pause_s <= 0)
            if pause_s > 0:
                self._wake.wait(pause_s)

    def _round(self) -> float:
        """Give every subtask its steps; return how long nothing is due, or 0 if something was done."""
        pause_s = _LONGEST_SLEEP_S
        self.in_step = True
        self._rounds.begin()
        for subtask_id, desk in list(self._desks.items()):
            self._host.running = subtask_id
            try:
                pause_s = min(pause_s, self._rounds.give_steps(desk, self._desks.values()))
            # A panic of RocksDB is no Exception, for one. It must not end the thread, on which later attempts run too.
            except BaseException as error:
                if not isinstance(error, Exception):
                    error = DeploymentError(f"a step of {subtask_id} was interrupted: {error!r}")
                self.failed(subtask_id, desk.attempt, error)  # the driver decides what it means; its region ends here
                self.end(self._host.region_of(subtask_id), in_order=False)
                return 0.0
        return pause_s


class Desk:
    """One subtask in its slot: what surrounds it, and when it gets a step."""

    def __init__(self, mailbox: Mailbox, host: SlotHost, subtask_id: SubtaskId, deployment: Deployment) -> None:
        subtask = host.subtasks[subtask_id]
        self.attempt = deployment.attempt
        self._mailbox = mailbox
        self._host = host
        self._id = subtask_id
        self._name = subtask.environment.name
        self._clock = subtask.environment.clock
        self.transport = Transport(mailbox.wake, self._lost)
        self._running = run_continuously(subtask, self)
        self._is_attached = False  # all tasks that the subtask needs have called
        self._needs = _needed_tasks(subtask.environment)
        self._puts_out = subtask.driver_output.is_used
        self._watermark_s = subtask.environment.graph.settings.auto_watermark_interval_ms / 1000
        self._flush_s = buffer_timeout_s(subtask.environment.vertex, deployment.buffer_timeout_ms)
        self._next_watermark = self._next_poll = self._next_clock = self._flushed = 0.0
        self.due_at = NEVER  # when a timer, a periodic watermark or an overtaking mark is due, as of the last step
        self._gather_s = _GATHER_S if self._flush_s is None else min(_GATHER_S, self._flush_s)
        self._gathers_until = 0.0
        self._holds_output = False  # some may wait for that time
        self._full_since = 0.0  # 0: the output is not full
        self._asks_since = 0.0  # 0: no operator is full
        self._held: Spool | None = None  # the blobs of channels that are ahead
        self._elsewhere = _on_other_hosts(deployment, subtask_id)
        self._shuffled_bytes = 0  # of blobs to these subtasks, since the last acknowledgement

    @property
    def messages(self) -> int:
        return self.transport.messages

    @property
    def waiting_on_disk_bytes(self) -> int:
        """How much of the blobs that wait for a mark is on disk."""
        return 0 if self._held is None else self._held.spilled_bytes

    def attach(self, link: Link, carries: Carries) -> bool:
        """Use the connection of a task; return False if the subtask waits for none.

        The subtask runs when its last task has called.
        """
        if not self.transport.attach(link, carries):
            return False
        if self._needs <= self.transport.attached:
            self._next_watermark = self._clock.monotonic() + self._watermark_s
            self._is_attached = True
            self._mailbox.wake()
        return True

    def leave(self, *, in_order: bool) -> None:
        """Run the subtask no more."""
        if self._held is not None:
            self._held.close()
        self.transport.finish() if in_order else self.transport.abort()

    def _lost(self, carried: Carries, error: Exception | None) -> None:
        task = f"the Spark task that {_WORK[carried]} of {self._name}"
        why = f"{task} is gone" if error is None else f"{task} brought what the subtask cannot take: {error}"
        # A late loss belongs to the attempt of this connection, although the next one may be deployed already.
        self._mailbox.failed(self._id, self.attempt, DeploymentError(why))

    def give_blob(self, blob: Blob) -> None:
        self._running.give(blob)

    def give_order(self, order: EpochOrder) -> None:
        self._running.give_order(order)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._running.checkpoint_aborted(checkpoint_id)

    def pause_source(self) -> None:
        self._running.pause_reading()

    # ----------------------------------------------------------------------------------------------------- a step

    def step(self, now: float) -> float:
        """Do what is due; return how long nothing is due, or 0 if something was done."""
        running = self._running
        if not self._is_attached:
            return _LONGEST_SLEEP_S  # the call of the last task wakes the mailbox
        overtakes_s = running.handle_urgent()
        if self.transport.is_full or (self._puts_out and self._mailbox.reports.is_full):
            self._full_since, self.due_at = self._full_since or now, now + overtakes_s
            return min(_LONGEST_SLEEP_S, overtakes_s)  # room in the queue wakes the mailbox
        if self._full_since:
            running.blocked_s += now - self._full_since
            self._full_since = 0.0
        pause_s = min(self._follow_clock(now), overtakes_s)
        self.due_at = now + pause_s
        self._count_waiting(now)
        if running.may_take:
            running.gathers = now < self._gathers_until
            running.take()
            if running.has_input or running.gathers:
                self._holds_output = True
                self._flush_if_due(now)
            else:
                self._all_left(now)
            return 0.0
        if self._holds_output:
            if now >= self._gathers_until:
                running.flush()
                self._all_left(now)
            else:
                pause_s = min(pause_s, self._gathers_until - now)
        if running.may_read:
            return min(pause_s, self._poll(running, now))
        return pause_s

    def _count_waiting(self, now: float) -> None:
        """Count how long an operator is full: it is what the records wait for. The other subtasks go on meanwhile."""
        if self._asks_since:
            self._running.count_busy(now - self._asks_since)
        self._asks_since = now if self._running.is_full else 0.0

    def _all_left(self, now: float) -> None:
        self._flushed, self._gathers_until, self._holds_output = now, now + self._gather_s, False

    def _follow_clock(self, now: float) -> float:
        """Fire timers and emit periodic watermarks, if they are due; return how long none is."""
        running, pause_s = self._running, _LONGEST_SLEEP_S
        if self._watermark_s > 0:
            if now >= self._next_watermark:
                running.emit_periodic_watermarks()
                running.flush()
                self._next_watermark = now + self._watermark_s
            pause_s = self._next_watermark - now
        if now >= self._next_clock:
            timer_ms = running.next_timer_ms()
            if timer_ms is not None and timer_ms <= self._clock.now_ms():
                running.advance_clock()
                running.flush()
                self._next_clock = now + _CLOCK_S
                timer_ms = running.next_timer_ms()
            if timer_ms is not None:
                pause_s = min(pause_s, max(_CLOCK_S, (timer_ms - self._clock.now_ms()) / 1000))
            return pause_s
        return min(pause_s, self._next_clock - now)

    def _poll(self, source: ContinuousSubtask, now: float) -> float:
        if now < self._next_poll:
            return self._next_poll - now
        progress = source.poll(min(_POLL_RECORDS, source.step_size.records), _POLL_MS, _POLL_BYTES)
        if progress.backlog:
            self._flush_if_due(now)
        else:
            self._flushed = now  # `poll` has sent everything
        self._next_poll = now if progress.backlog or progress.finished else now + _POLL_PAUSE_S
        return self._next_poll - now

    def _flush_if_due(self, now: float) -> None:
        """Send what has waited for the buffer timeout, although more is coming."""
        if self._flush_s is not None and now - self._flushed >= self._flush_s:
            self._running.flush()
            self._flushed = now

    # ------------------------------------------------------------------------------------- for the running subtask

    def send(self, item: Emitted) -> None:
        if isinstance(item, OutputPart):
            self._mailbox.put_out(self.attempt, item)
        else:
            if self._elsewhere and Destination(item.exchange, item.target) in self._elsewhere:
                self._shuffled_bytes += item.size_bytes
            self.transport.send(item)

    def taken(self, blob: ReceivedBlob) -> None:
        if isinstance(blob, Blob):
            self.transport.taken(blob.size_bytes)

    def defer(self, blob: ReceivedBlob) -> ReceivedBlob:
        if not isinstance(blob, Blob):
            return blob  # it waited for the last mark already
        point("ahead", self._host.slot)
        return self._spooled(blob)

    def record(self, blob: ReceivedBlob) -> ReceivedBlob:
        assert isinstance(blob, Blob), "a blob is recorded as it arrives"
        point("overtaken", self._host.slot)
        return self._spooled(blob)

    def _spooled(self, blob: Blob) -> WaitingBlob:
        if self._held is None:
            self._held = self._host.spool()
        return WaitingBlob(blob, self._held.add(*blob.encode()))

    def released(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def capture(self, subtask: Subtask, order: EpochOrder) -> CapturedSubtask | None:
        point("epoch", self._host.slot)
        return self._host.capture(self._id, order)

    def write(self, captured: CapturedSubtask) -> None:
        self._host.write(captured)

    def acknowledge(self, ack: Ack) -> None:
        ack.crossed_bytes, self._shuffled_bytes = self._shuffled_bytes, 0
        ack.crossed_bytes += self.transport.crossed_bytes(ack.bytes_out)
        point("acknowledge", self._host.slot)
        self._mailbox.acknowledge(self._id, self.attempt, ack)


def _needed_tasks(environment: SubtaskEnvironment) -> frozenset[Carries]:
    """Return which tasks a subtask has. One without inputs and outputs has a task too: Spark runs the whole job."""
    graph, vertex = environment.graph, environment.vertex
    needs = {Carries.INPUT} if graph.inputs_of(vertex.id) else set()
    return frozenset(needs | {Carries.OUTPUT} if graph.outputs_of(vertex.id) or not needs else needs)


def _on_other_hosts(deployment: Deployment, sender: SubtaskId) -> frozenset[Destination]:
    """Return where a subtask sends to another host: tasks run beside their slots, where Spark has room for them."""
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
