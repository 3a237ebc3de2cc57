"""The work of the loop between epochs, when no user code runs: requests, checkpoints and waiting."""

from __future__ import annotations

from collections.abc import Callable

from ekorn.driver.checkpoints.checkpoint_requests import CheckpointRequest
from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest
from ekorn.driver.loop.interrupts import check_cancelled, raise_failure
from ekorn.driver.loop.job import Job
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.engine.protocol import Engine
from ekorn.operators.epoch import Ack

__all__ = ["BetweenEpochs"]

_POLL_S = 0.05  # how often a lost slot is looked for while the loop waits


class BetweenEpochs:
    """The time between two epochs.

    Attributes:
        stop: The savepoint that the job ends with; None until one is requested.
    """

    def __init__(self, job: Job, engine: Engine, checkpoints: JobCheckpoints, rescaling: Rescaling) -> None:
        self._job = job
        self._engine = engine
        self._checkpoints = checkpoints
        self._rescaling = rescaling
        self.stop: SavepointRequest | None = None

    def attend(self) -> None:
        """Handle everything that has happened meanwhile: a cancellation, requests, snapshots, timeouts."""
        check_cancelled(self._job.requests)
        for request in self._job.requests.take_savepoints():
            self._accept(request)
        for rescale in self._job.requests.take_rescales():
            self._rescaling.accept(rescale, stopping=self.stop is not None)
        for wanted in self._job.requests.take_checkpoints():
            self._accept_checkpoint(wanted)
        self._checkpoints.attend()
        self._rescaling.attend()

    def _accept(self, request: SavepointRequest) -> None:
        if self._job.graph.settings.batch:
            request.fail("a job in BATCH mode has no savepoints")
        elif self.stop is not None:
            request.fail("the job is being stopped with a savepoint already")
        elif self._checkpoints.admit(request):
            if request.synchronous:
                self.stop = request
            else:
                self._checkpoints.request_savepoint(request)

    def _accept_checkpoint(self, request: CheckpointRequest) -> None:
        if self._job.graph.settings.batch or not self._job.settings.checkpoints.enabled:
            request.fail("the job takes no checkpoints (execution.checkpointing.interval)")
        elif self.stop is not None:
            request.fail("the job is being stopped with a savepoint")
        else:
            self._checkpoints.request_checkpoint(request)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Attend until the condition holds.

        Raises:
            AttemptFailed: A slot is lost, so the condition may never hold.
        """
        while not condition():
            self.attend()
            if condition():
                return
            raise_failure(self._engine.lost())
            self._engine.wait(_POLL_S)

    def wait_for_reader(self) -> None:
        """Wait while the program has read too few of the collected records, unless a request needs the next epoch."""
        collected, most_bytes = self._job.results.collected, self._job.settings.collect_buffer_bytes
        self.wait_until(
            lambda: collected.size_bytes < most_bytes or self._attempt_is_to_end or self._checkpoints.is_requested
        )

    @property
    def _attempt_is_to_end(self) -> bool:
        """Whether the attempt is to end, with a savepoint or with a rescale."""
        return self.stop is not None or self._rescaling.is_ready

    def wait_ms(self, wait_ms: int) -> None:
        """Attend for a while."""
        until_ms = self._job.steady.now_ms() + wait_ms
        self.wait_until(lambda: self._job.steady.now_ms() >= until_ms)

    def wait_for_checkpoint(self, checkpoint_id: int) -> None:
        """Wait for a checkpoint to complete if that keeps the next one on time."""
        started = self._job.clock.monotonic()
        for _ in range(len(self._job.subtasks) + 1):  # the report of each subtask ends a wait
            self.attend()
            left_s = self._checkpoints.patience_ms() / 1000 - (self._job.clock.monotonic() - started)
            if checkpoint_id not in self._checkpoints.pending_ids or left_s <= 0:
                return
            self._engine.wait(left_s)

    def wait_for_mark(self, interval_ms: int) -> None:
        """Wait before the next epoch of a job that runs continuously, but not past a checkpoint that is due."""
        steady = self._job.steady
        until_ms = steady.now_ms() + interval_ms
        while True:
            self.attend()
            now_ms = steady.now_ms()
            due_ms = self._checkpoints.next_due_ms(now_ms)
            left_ms = (until_ms if due_ms is None else min(until_ms, due_ms)) - now_ms
            if left_ms <= 0 or self._attempt_is_to_end:
                return
            raise_failure(self._engine.lost())
            self._engine.wait(min(left_ms / 1000, _POLL_S))

    def rest(self, wait_ms: int) -> None:
        """Wait while some regions run and others wait for their restart. Requests wait for the restart too.

        Raises:
            AttemptFailed: A subtask or slot of the regions that run has failed.
        """
        steady = self._job.steady
        until_ms = steady.now_ms() + wait_ms
        while (left_ms := until_ms - steady.now_ms()) > 0:
            check_cancelled(self._job.requests)
            self._checkpoints.attend()
            raise_failure(self._engine.lost())
            self._engine.wait(min(left_ms / 1000, _POLL_S))

    @property
    def reader_is_behind(self) -> bool:
        """Whether so many collected records wait for the program that a source need not read more now."""
        return 2 * self._job.results.collected.size_bytes >= self._job.settings.collect_buffer_bytes

    def idle(self, wait_ms: int, acks: list[Ack]) -> None:
        """Wait before the next epoch, but not past a timer, a checkpoint that is due, or a report of a slot."""
        buffer_timeout_ms = self._job.settings.buffer_timeout_ms
        if buffer_timeout_ms >= 0:
            wait_ms = min(wait_ms, max(buffer_timeout_ms, 1))
        if wait_ms <= 0:
            return
        now_ms, day_ms = self._job.steady.now_ms(), self._job.clock.now_ms()
        waits = [wait_ms, *(a.next_timer_ms - day_ms for a in acks if a.next_timer_ms is not None)]
        due_ms = self._checkpoints.next_due_ms(now_ms)
        if due_ms is not None:
            waits.append(due_ms - now_ms)
        self._engine.wait(max(0, min(waits)) / 1000)
