"""The engine of jobs that run continuously in slot processes.

An attempt of a region is one flow of blobs through its subtasks. An epoch is an order to the sources, and an answer of
every subtask once the mark of the epoch has passed through it. A failure ends the flow of its region, and the other
regions go on (docs/decisions/0045-regions-continuously.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Literal, Protocol

from ekorn.engine.protocol import EpochResult, Failure
from ekorn.engine.slots.running_subtasks import RunningSubtasks, is_telling
from ekorn.engine.slots.slot_calls import SlotCalls, slot_of, subtasks_in
from ekorn.engine.slots.slot_engine import Platform, SlotEngine
from ekorn.errors import DeploymentError, SlotLostError, UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import regions
from ekorn.operators.epoch import SubtaskOrder
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.messages import Discard, OrderEpoch, PauseSources, Request
from ekorn.slot_protocol.slot_events import FlowEvent
from ekorn.state.snapshots import RestorePlan

__all__ = ["MARK_INTERVAL_MS", "ContinuousSlotEngine", "FlowCarrier"]

MARK_INTERVAL_MS = 200
_OUTPUT_BYTES = 64 << 20  # of output that waits for the end of an epoch: above it, the sources read nothing until then
_POLL_S = 0.05  # how often a lost slot is looked for while an epoch runs
_PATIENCE_S = 1.0  # how long a more telling failure is waited for after a broken connection


class FlowCarrier(Protocol):
    """Carries blobs between the slots, region by region, for as long as an attempt of the region lasts.

    Attributes:
        on_failed: Called from any thread with an error, and with the subtasks that have failed by it; none of them:
            all have.
    """

    on_failed: Callable[[Exception, frozenset[SubtaskId]], None]

    def lay_out(self, graph: JobGraph) -> None:
        """Note the graph of the next attempts. No flow is running."""

    def reserve(self, graph: JobGraph) -> None:
        """Reserve what a deployment of another graph needs, while the running attempt goes on.

        Raises:
            DeploymentError: There is too little for it.
        """

    def warm_up(self, graph: JobGraph) -> None:
        """Start in advance what takes time to start, after `reserve`. What cannot be started starts later."""

    def fit(self, deployment: Deployment) -> Deployment:
        """Reserve what a deployment needs; return the deployment with what the flows ask of its subtasks.

        Raises:
            DeploymentError: There is too little for it.
        """

    def await_resources(self, graph: JobGraph) -> Failure | None:
        """Wait until the flows of all regions can run at the same time; return why they cannot."""

    def start(self, region: int, attempt: int) -> None:
        """Carry blobs between the slots of a region's subtasks from now on."""

    def end(self, ended: Collection[int], *, in_order: bool) -> None:
        """Carry no more blobs of some regions, which may have no flow.

        Args:
            ended: The regions.
            in_order: The subtasks are closed, and the flows end by themselves. Else they go on until broken off.
        """

    def waits_for_resources(self, running: Collection[SubtaskId]) -> bool:
        """Return whether the flows of some subtasks that run do not run yet. Thread-safe."""

    def cancel(self) -> None:
        """End all flows soon: the job was cancelled. Calls `on_failed`. Thread-safe."""

    def close(self) -> None:
        """Release everything. The flows and the slots have ended."""


class ContinuousSlotEngine(SlotEngine):
    """Hosts a job in slot processes that run it continuously.

    Args:
        graph: The job.
        calls: The slots of the job.
        platform: What the job runs on.
        flows: Carries the blobs.
        stall_timeout_s: How long an epoch may make no progress before it fails.
    """

    def __init__(
        self, graph: JobGraph, calls: SlotCalls, platform: Platform, flows: FlowCarrier, stall_timeout_s: float
    ) -> None:
        super().__init__(graph, calls, platform, stall_timeout_s)
        self._flows = flows
        self._running = RunningSubtasks()
        self._ordered = -1  # the newest epoch whose marks are on their way
        self.next_order: Callable[[], MarkOrder | None] | None = None
        self._has_reason = False  # the reason of the failure was waited for
        flows.on_failed = self._fail
        self._lay_out(graph)

    @property
    def execution(self) -> Literal["continuous"]:
        return "continuous"

    @property
    def mark_interval_ms(self) -> int:
        return MARK_INTERVAL_MS

    def _lay_out(self, graph: JobGraph) -> None:
        self._regions = regions(graph)
        self._flows.lay_out(graph)

    # ------------------------------------------------------------------------------------------------- deployments

    def prepare(self, graph: JobGraph) -> None:
        self._flows.reserve(graph)
        super().prepare(graph)
        self._flows.warm_up(graph)

    def preload(self, graph: JobGraph, plan: RestorePlan) -> None:
        super().preload(graph, plan)
        self._flows.warm_up(graph)  # what was started before may have ended again

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt of all subtasks, or of those that it names: the others go on meanwhile."""
        try:
            deployment = self._flows.fit(deployment)
        except DeploymentError as error:
            return Failure(error)
        if deployment.only is None:
            self.pool.begin_replacing()
            self._flows.end(set(self._regions.values()), in_order=False)
            self._running.clear()
            self._has_reason = False
        else:
            self.set_aside(deployment.only)
        # Before slots start, which are to spread over all hosts. Where regions go on, nothing waits here.
        failure = self._flows.await_resources(deployment.graph) if deployment.only is None else None
        failure = failure or self._lost_running() or self._unreadable_of_running()
        failure = failure or super().deploy(replace(deployment, continuous=True))
        if failure is not None:
            return failure if deployment.only is None else self._of_region(failure, deployment.only)
        started = frozenset(self._regions) if deployment.only is None else deployment.only
        self._running.start(started, deployment.attempt)
        for region in sorted({self._regions[subtask] for subtask in started}):
            self._flows.start(region, deployment.attempt)
        return None

    def _unreadable_of_running(self) -> Failure | None:
        """Return the failure to read what a slot reported, if a subtask of the slot goes on: its output may be lost."""
        failure = self._inbox.unreadable
        return failure if failure is not None and failure.slot in self._slots_in_use() else None

    def _of_region(self, failure: Failure, restarting: frozenset[SubtaskId]) -> Failure:
        """Return the failure of a region's deployment: it is that of the region, if all others go on as they were."""
        if not all(self._leaves_others_alone(each.error) for each in (failure, *failure.others)):
            return failure
        lost = self._lost_running()
        if lost is not None:
            others = tuple(each for each in (replace(failure, others=()), *failure.others) if each.slot != lost.slot)
            return replace(lost, subtasks=lost.subtasks | restarting, others=others)
        return replace(failure, subtasks=restarting)

    def _leaves_others_alone(self, error: BaseException) -> bool:
        """Return whether an error of a slot says nothing about the subtasks that go on, in whichever slot they are.

        A function of the user that cannot be opened leaves the other subtasks of its slot alone, and a slot that is
        gone those of all other slots. Other errors may not.
        """
        if isinstance(error, SlotLostError):
            return not self._calls.is_alive(error.slot)
        return isinstance(error, UserFunctionError)

    def set_aside(self, subtasks: frozenset[SubtaskId]) -> None:
        """End the flows of regions that have failed. Epochs are those of the other subtasks until the next `deploy`."""
        self.pool.begin_replacing()
        ran = self._running.set_aside(subtasks)
        alive = {number for number in self._slots_of(ran) if self._calls.is_alive(number)}
        self._calls.ask_all(dict.fromkeys(sorted(alive), Discard(subtasks)))  # `lost` finds a slot that is silent
        self._flows.end({self._regions[subtask] for subtask in subtasks}, in_order=False)
        self._running.failures.forget(subtasks)
        self._has_reason = False

    # ------------------------------------------------------------------------------------------------------ epochs

    def run_epoch(self, order: MarkOrder) -> EpochResult[MarkAck]:
        return self._run_watched(order, self._run)

    def _run(self, order: MarkOrder) -> EpochResult[MarkAck]:
        """Order the mark of an epoch, and wait until it has passed through every subtask that runs."""
        result = self._run_until(order, None)
        assert result is not None, "the time is not limited"
        return result

    def run_others(self, order: MarkOrder, within_s: float) -> EpochResult[MarkAck] | None:
        self._watch.begin(order.number, self._slots_in_use(), time.monotonic())
        result = self._run_until(order, time.monotonic() + within_s)
        stalled = self._watch.end() and result is not None and result.failure is not None
        if stalled and self._lost_running() is None:
            return EpochResult(failure=Failure(self._watch.stall_error(order.number, self._graph)))
        return result

    def _run_until(self, order: MarkOrder, until_s: float | None) -> EpochResult[MarkAck] | None:
        """Order the mark of an epoch, and wait until all have it; return None if the time is up before."""
        failure = self.lost() or (self._send(order) if order.number > self._ordered else None)
        has_paused = False
        while failure is None and not self._running.have_acknowledged(order.number):
            left_s = _POLL_S if until_s is None else until_s - time.monotonic()
            if left_s <= 0:
                return None
            self.wait(min(left_s, _POLL_S))
            failure = self.lost() or self._send_next()
            if failure is None and self._running.output_bytes >= _OUTPUT_BYTES and not has_paused:
                has_paused, failure = True, self._ask_running(PauseSources(self._attempt))
        if failure is not None:
            return EpochResult(failure=failure)
        return EpochResult(self._running.take_acks(order.number))

    def _send(self, order: MarkOrder) -> Failure | None:
        self._ordered = order.number
        return self._ask_running(OrderEpoch(self._attempt, order))

    def _send_next(self) -> Failure | None:
        """Send the marks of the next epoch too, if the driver wants that."""
        order = None if self.next_order is None else self.next_order()
        return None if order is None else self._send(order)

    def _waits_for_resources(self) -> bool:
        return self._flows.waits_for_resources(list(self._running.attempts))

    # ---------------------------------------------------------------------------------------------------- requests

    def _slots_of(self, subtasks: Collection[SubtaskId]) -> set[int]:
        return {slot_of(self._graph, subtask) for subtask in subtasks}

    def _slots_in_use(self) -> set[int]:
        """Return the slots of the subtasks that run. The slot of a region that was set aside may be gone."""
        return self._slots_of(self._running.attempts)

    def _ask_running(self, request: Request) -> Failure | None:
        return self._confined(self._calls.ask_all(dict.fromkeys(sorted(self._slots_in_use()), request)))

    def _begin_savepoint(self, order: SubtaskOrder) -> Failure | None:
        return self._confined(super()._begin_savepoint(order))

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        return self._confined(super().notify_completed(checkpoint_id))

    def notify_aborted(self, checkpoint_id: int, failed: frozenset[SubtaskId] = frozenset()) -> Failure | None:
        return self._confined(super().notify_aborted(checkpoint_id, failed))

    def _confined(self, failure: Failure | None) -> Failure | None:
        """Name the subtasks of slots that are gone: all other slots have performed the request."""
        lost = None
        if failure is not None and isinstance(failure.error, SlotLostError):
            lost = self._lost_running()
        return lost or failure

    def close_subtasks(self) -> Failure | None:
        failure = super().close_subtasks()
        self._flows.end(set(self._regions.values()), in_order=failure is None)
        return failure

    def shutdown(self) -> None:
        try:
            self._flows.end(set(self._regions.values()), in_order=False)
            super().shutdown()
        finally:
            self._flows.close()

    # ---------------------------------------------------------------------------------------------------- failures

    def _take_flow(self, event: FlowEvent) -> None:
        self._running.take(event)

    def _fail(self, error: Exception, subtasks: frozenset[SubtaskId] = frozenset()) -> None:
        """Note that some subtasks, or all of them, have failed. Thread-safe."""
        self._running.failures.add(error, subtasks)
        self.wake()

    def _slot_lost(self, number: int) -> None:
        running = self._running.attempts
        hosted = frozenset(subtask for subtask in subtasks_in(self._graph, {number}) if subtask in running)
        if hosted:
            self._fail(self.pool.slots[number].loss("it was abandoned"), hosted)

    def _epoch_stalled(self) -> None:
        self._fail(DeploymentError("the epoch has stalled"))

    def _cancel(self) -> None:
        self._flows.cancel()

    def lost(self) -> Failure | None:
        failure = self._running.failures.failure
        if failure is not None:
            return self._with_reason(failure)
        return self._lost_running() or self._inbox.unreadable

    def _lost_running(self) -> Failure | None:
        """Return a failure if the slot of a subtask that runs is gone."""
        slots = self._calls.gone()
        gone = subtasks_in(self._graph, slots) & self._running.attempts.keys() if slots else frozenset()
        if not gone:
            return None
        number = min(self._slots_of(gone))
        return Failure(self._calls.loss_of(number), number, frozenset(gone))

    def _with_reason(self, failure: Failure) -> Failure:
        """Return the failure, or the one that was its reason: a connection breaks when something else has failed."""
        if self._has_reason:
            return failure
        self._has_reason = True
        deadline = time.monotonic() + _PATIENCE_S
        while not is_telling(failure.error) and time.monotonic() < deadline:
            lost = self._lost_running()
            if lost is not None:
                return replace(lost, subtasks=lost.subtasks | failure.subtasks if failure.subtasks else frozenset())
            self.wait(_POLL_S)
            failure = self._running.failures.failure or failure
        return failure
