"""The thread that runs the subtasks of a slot continuously, step by step.

A pure scheduler decides which subtask gets the next step (`step_scheduler.py`), and this thread performs it. A subtask
whose output waits to be sent does nothing in its step, so no slot ever waits for another one. The thread sleeps until
something arrives or is due.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from ekorn.clock import Clock
from ekorn.errors import DeploymentError, SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot.continuous.step_scheduler import LONGEST_WAIT_S, RunStep, StepScheduler, Wait
from ekorn.slot.continuous.subtask_runner import OnFailure, SubtaskRunner
from ekorn.slot.event_reports import Reports
from ekorn.slot.host import SlotHost
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import EpochAcknowledged, SlotActivity
from ekorn.slot_protocol.task_messages import Attach

__all__ = ["Mailbox"]


class Mailbox:
    """The subtasks of one slot in one attempt, and the thread that runs them."""

    def __init__(self, host: SlotHost, user_code: UserCodeLock, clock: Clock, reports: Reports) -> None:
        self._host = host
        self._user_code = user_code
        self._clock = clock
        self.reports = reports
        self._wake = threading.Event()
        self._runners: dict[SubtaskId, SubtaskRunner] = {}
        self._thread: threading.Thread | None = None
        self._ended = False
        self._past_messages = 0
        self._scheduler = StepScheduler()
        self._orders_given = 0
        self.failed: OnFailure = lambda subtask, attempt, error: None
        self._in_step = False
        self._epoch = -1  # the newest epoch that a subtask has ended; heartbeats report it
        self._answered: frozenset[SubtaskId] = frozenset()  # the subtasks that have ended it

    def activity(self) -> SlotActivity:
        """Return what the slot is doing. Thread-safe."""
        messages = self._past_messages + sum(runner.messages for runner in list(self._runners.values()))
        return SlotActivity(self._epoch, self._answered, messages, self._in_step)

    def begin(self, deployment: Deployment) -> None:
        """Run the subtasks of a deployment from now on, each as soon as its tasks have called.

        Called with the lock on user code.
        """
        runners: dict[SubtaskId, SubtaskRunner] = {}  # in the order of the graph
        for of in self._host.subtasks:
            if of in self._runners:
                runners[of] = self._runners[of]  # its region goes on
            elif deployment.only is None or of in deployment.only:
                runners[of] = SubtaskRunner(self._host, of, deployment, self)
        self._runners = runners
        self._scheduler.set_subtasks(runners)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mailbox", daemon=True)
            self._thread.start()

    def end(self, only: Collection[SubtaskId] | None = None, *, in_order: bool) -> None:
        """Stop running all subtasks, or some of them. Called with the lock on user code.

        Args:
            only: The subtasks; None: all of them.
            in_order: Whether the subtasks have finished. If so, their tasks get all output and end; else the
                connections break.
        """
        ended = [runner for of, runner in self._runners.items() if only is None or of in only]
        self._runners = {} if only is None else {of: runner for of, runner in self._runners.items() if of not in only}
        self._scheduler.set_subtasks(self._runners)
        for runner in ended:
            self._past_messages += runner.messages
            runner.leave(in_order=in_order)

    def stop(self) -> None:
        """End the thread after the running step."""
        self._ended = True
        self._wake.set()

    def serve(self, request: Attach, link: Link) -> None:
        """Carry blobs between a subtask and one of its tasks, until the connection ends.

        Raises:
            SlotLostError: The slot does not run the subtask, or such a task has called for it already.
        """
        runner = self._runners.get(request.subtask)
        if runner is None or runner.attempt != request.attempt or not runner.attach(link, request.carries):
            why = f"it does not wait for a task of attempt {request.attempt} for {request.subtask}"
            raise SlotLostError(self._host.slot, why)
        runner.transport.receive_all(link, runner.give)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Record no more blobs for a checkpoint that was aborted. Called with the lock on user code."""
        for runner in self._runners.values():
            runner.checkpoint_aborted(checkpoint_id)

    def order(self, order: MarkOrder) -> None:
        """Let the sources emit the mark of an epoch, and other subtasks let it overtake. Thread-safe."""
        for runner in self._runners.values():
            runner.give_order(order)
        self._orders_given += 1  # the driver orders over one connection
        self.wake()

    def pause_sources(self) -> None:
        """Let the sources read nothing until the next order. Thread-safe."""
        for runner in self._runners.values():
            runner.pause_reading()

    def wake(self) -> None:
        """Let the thread look for something to do. Thread-safe."""
        self._wake.set()

    def acknowledge(self, subtask_id: SubtaskId, attempt: int, ack: MarkAck) -> None:
        """Report the end of a subtask's epoch to the driver."""
        if ack.epoch > self._epoch:
            self._epoch, self._answered = ack.epoch, frozenset()
        if ack.epoch == self._epoch:
            self._answered |= {subtask_id}
        self.reports.put(EpochAcknowledged(attempt, ack))

    def _run(self) -> None:
        self._host.thread = threading.get_ident()
        while not self._ended:
            self._wake.clear()
            self._user_code.acquire_after_requests()
            wait_s = LONGEST_WAIT_S
            try:
                wait_s = self._run_round()
            finally:
                self._in_step = False
                self._host.running = None
                self._user_code.release(resumes=wait_s <= 0)
            if wait_s > 0:
                self._wake.wait(wait_s)

    def _run_round(self) -> float:
        """Run the steps of a round; return how long the thread waits after it."""
        self._in_step = True
        while True:
            now = self._clock.monotonic()
            action = self._scheduler.next(
                now, orders_given=self._orders_given, request_waits=self._user_code.has_waiting_requests
            )
            if not isinstance(action, RunStep):
                return action.seconds if isinstance(action, Wait) else 0.0
            if action.continues:
                self._user_code.give_way()
            if not self._run_step(action.subtask, now):
                return 0.0

    def _run_step(self, subtask_id: SubtaskId, now: float) -> bool:
        """Run a step of a subtask; return False if it has failed."""
        runner = self._runners[subtask_id]
        self._host.running = subtask_id
        try:
            wait_s = runner.step(now)
        # A panic of RocksDB is no Exception, for one. It must not end the thread, on which later attempts run too.
        except BaseException as error:
            if not isinstance(error, Exception):
                error = DeploymentError(f"a step of {subtask_id} was interrupted: {error!r}")
            self.failed(subtask_id, runner.attempt, error)  # the driver decides what follows; the region ends here
            self.end(self._host.region_of(subtask_id), in_order=False)
            return False
        self._scheduler.stepped(wait_s, runner.due_at)
        return True
