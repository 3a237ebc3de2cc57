"""The work of the loop between two epochs: requests, events of the slots, and waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ekorn.driver.checkpoints.checkpoint_requests import CheckpointRequest
from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest
from ekorn.driver.loop.interrupts import check_cancelled, raise_failure
from ekorn.driver.loop.job import Job
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.engine.protocol import Engine
from ekorn.operators.epoch import Ack

__all__ = ["POLL_S", "BetweenEpochs"]

POLL_S = 0.05  # the interval at which a waiting loop looks for lost slots


class BetweenEpochs:
    """Handles requests and the events of slots between two epochs, and waits for the next epoch.

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
        """Handle what has happened since the last call: a cancellation, requests, snapshots, timeouts."""
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
            request.fail("a job in BATCH mode cannot take savepoints")
        elif self.stop is not None:
            request.fail("the job is already being stopped with a savepoint")
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
        """Attend until a condition is true.

        Raises:
            AttemptFailed: A slot is lost, so the condition may never become true.
        """
        while not condition():
            self.attend()
            if condition():
                return
            raise_failure(self._engine.lost())
            self._engine.wait(POLL_S)

    @property
    def attempt_is_to_end(self) -> bool:
        """Whether the attempt is to end, with a savepoint or with a rescale."""
        return self.stop is not None or self._rescaling.is_ready

    @property
    def reader_is_behind(self) -> bool:
        """Whether the collect buffer is at least half full."""
        return 2 * self._job.results.collected.size_bytes >= self._job.settings.collect_buffer_bytes

    def wait_ms(self, wait_ms: int) -> None:
        """Attend for a while."""
        until_ms = self._job.steady.now_ms() + wait_ms
        self.wait_until(lambda: self._job.steady.now_ms() >= until_ms)

    def idle(self, wait_ms: int, acks: Sequence[Ack]) -> None:
        """Wait before the next epoch. A timer, a checkpoint that is due or the report of a slot ends the wait."""
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
