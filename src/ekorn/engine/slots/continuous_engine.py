"""The base of engines with slot processes that run jobs continuously: everything but how blobs move between the slots.

An attempt of a region is one flow of blobs through its subtasks. An epoch is an order to the sources, and an answer of
every subtask once the mark of the epoch has passed through it. A failure ends the flow of its region, and the other
regions go on (docs/decisions/0045-regions-continuously.md).
"""

from __future__ import annotations

import pickle
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import assert_never

from ekorn.engine.epoch_acks import EpochAcks
from ekorn.engine.protocol import EpochResult, Failure
from ekorn.engine.slots.slot_engine import SlotEngine
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.subtask_outcome import add_output
from ekorn.errors import DeploymentError, SlotLostError, UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import regions
from ekorn.operators.epoch import EpochOrder, OutputPart
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.messages import Discard, HoldSources, OrderEpoch, Request
from ekorn.slot_protocol.slot_events import EpochAcknowledged, FlowEvent, OutputLeft, SubtaskFailed

__all__ = ["MARK_INTERVAL_MS", "ContinuousSlotEngine", "FlowFailures", "is_telling"]

MARK_INTERVAL_MS = 200
_OUTPUT_BYTES = 64 << 20  # of output that waits for the end of an epoch: above it, the sources read nothing until then
_POLL_S = 0.05  # how often a lost slot is looked for while an epoch runs
_PATIENCE_S = 1.0  # how long a more telling failure is waited for after a broken connection


class ContinuousSlotEngine(SlotEngine):
    """Hosts a job in slot processes that run it continuously. A subclass carries the blobs."""

    def __init__(self, graph: JobGraph, pool: SlotPool, stall_timeout_s: float) -> None:
        super().__init__(graph, pool, stall_timeout_s)
        self._attempts: dict[SubtaskId, int] = {}  # of the subtasks that run: the attempt in which each was deployed
        self._acks = EpochAcks()
        self._ordered = -1  # the newest epoch whose marks are on their way
        self.next_order: Callable[[], EpochOrder | None] | None = None
        self._parts: dict[SubtaskId, list[OutputPart]] = {}  # since the last acknowledgement of the subtask
        self._output_bytes = 0  # of the parts, and of those that acknowledgements of the running epoch have taken
        self._failures = FlowFailures()
        self._has_reason = False  # the reason of the failure was waited for
        self._lay_out(graph)

    @property
    def mark_interval_ms(self) -> int | None:
        return MARK_INTERVAL_MS

    def _lay_out(self, graph: JobGraph) -> None:
        super()._lay_out(graph)
        self._regions = regions(graph)

    @abstractmethod
    def _start_flow(self, region: int, attempt: int) -> None:
        """Carry blobs between the slots of a region's subtasks from now on."""

    @abstractmethod
    def _end_flows(self, ended: frozenset[int], *, in_order: bool) -> None:
        """Carry no more blobs of some regions, which may have no flow.

        Args:
            ended: The regions.
            in_order: The subtasks are closed, and the flows end by themselves. Else they go on until broken off.
        """

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt of all subtasks, or of those that it names: the others go on meanwhile."""
        if deployment.only is None:
            self.pool.begin_replacing()
            self._end_flows(frozenset(self._regions.values()), in_order=False)
            self._forget_all()
        else:
            self.set_aside(deployment.only)
        # Before slots start, which are to spread over all hosts. Where regions go on, nothing waits here.
        failure = self._await_places(deployment.graph) if deployment.only is None else None
        failure = failure or self._lost_running() or self._unreadable_of_running()
        failure = failure or super().deploy(replace(deployment, continuous=True))
        if failure is not None:
            return failure if deployment.only is None else self._of_region(failure, deployment.only)
        started = frozenset(self._regions) if deployment.only is None else deployment.only
        self._attempts |= dict.fromkeys(started, deployment.attempt)
        for region in sorted({self._regions[subtask] for subtask in started}):
            self._start_flow(region, deployment.attempt)
        return None

    def _await_places(self, graph: JobGraph) -> Failure | None:
        """Wait until all tasks of a graph can run at the same time; return why they cannot."""
        return None

    def _unreadable_of_running(self) -> Failure | None:
        """Return the failure to read what a slot reported, if a subtask of the slot goes on: its output may be lost."""
        failure = self._unreadable
        goes_on = failure is not None and any(self._slot_of(subtask) == failure.slot for subtask in self._attempts)
        return failure if goes_on else None

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
            return not self.pool.slots[error.slot].process.alive
        return isinstance(error, UserFunctionError)

    def _forget_all(self) -> None:
        self._attempts.clear()
        self._acks.clear()
        self._parts.clear()
        self._output_bytes = 0
        self._failures.clear()
        self._has_reason = False

    def set_aside(self, subtasks: frozenset[SubtaskId]) -> None:
        """End the flows of regions that have failed. Epochs are those of the other subtasks until the next `deploy`."""
        self.pool.begin_replacing()
        ran = self._attempts.keys() & subtasks
        for subtask in ran:
            del self._attempts[subtask]  # what it still reports is not taken any more
            self._parts.pop(subtask, None)
        self._acks.drop(subtasks)
        alive = {number for number in map(self._slot_of, ran) if self.pool.slots[number].process.alive}
        self._ask_all(dict.fromkeys(sorted(alive), Discard(subtasks)))  # `lost` finds a slot that does not answer
        self._end_flows(frozenset(self._regions[subtask] for subtask in subtasks), in_order=False)
        self._failures.forget(subtasks)
        self._has_reason = False

    def _run_levels(self, order: EpochOrder) -> EpochResult:
        """Order the mark of an epoch, and wait until it has passed through every subtask that runs."""
        result = self._run_until(order, None)
        assert result is not None, "the time is not limited"
        return result

    def run_others(self, order: EpochOrder, within_s: float) -> EpochResult | None:
        self._watch.begin(order.number, {self._slot_of(subtask) for subtask in self._attempts}, time.monotonic())
        result = self._run_until(order, time.monotonic() + within_s)
        stalled = self._watch.end() and result is not None and result.failure is not None
        if stalled and self._lost_running() is None:
            return EpochResult(failure=Failure(self._stall_error(order.number)))
        return result

    def _run_until(self, order: EpochOrder, until_s: float | None) -> EpochResult | None:
        """Order the mark of an epoch, and wait until all have it; return None if the time is up before."""
        assert self._deployment is not None, "deploy comes before the first epoch"
        failure = self.lost() or (self._send(order) if order.number > self._ordered else None)
        holds = False
        while failure is None and not self._acks.are_complete(order.number, self._attempts):
            left_s = _POLL_S if until_s is None else until_s - time.monotonic()
            if left_s <= 0:
                return None
            self.wait(min(left_s, _POLL_S))
            failure = self.lost() or self._send_next()
            if failure is None and self._output_bytes >= _OUTPUT_BYTES and not holds:
                holds, failure = True, self._ask_running(HoldSources(self._deployment.attempt))
        if failure is not None:
            return EpochResult(failure=failure)
        acks = self._acks.take(order.number, self._attempts)
        self._output_bytes = sum(part.size_bytes for parts in self._parts.values() for part in parts)
        return EpochResult(acks)

    def _send(self, order: EpochOrder) -> Failure | None:
        assert self._deployment is not None
        self._ordered = order.number
        return self._ask_running(OrderEpoch(self._deployment.attempt, order))

    def _send_next(self) -> Failure | None:
        """Send the marks of the next epoch too, if the driver wants that."""
        order = None if self.next_order is None else self.next_order()
        return None if order is None else self._send(order)

    def _ask_running(self, request: Request) -> Failure | None:
        """Ask the slots of the subtasks that run. The slot of a region that was set aside may be gone."""
        slots = {self._slot_of(subtask) for subtask in self._attempts}
        return self._confined(self._ask_all(dict.fromkeys(sorted(slots), request)))

    def _slot_of(self, subtask: SubtaskId) -> int:
        return self._graph.slot_of(self._graph.vertices[subtask.vertex], subtask.subtask)

    def _begin_savepoint(self, order: EpochOrder) -> Failure | None:
        return self._confined(super()._begin_savepoint(order))

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        return self._confined(super().notify_completed(checkpoint_id))

    def notify_aborted(self, checkpoint_id: int, failed: frozenset[SubtaskId] = frozenset()) -> Failure | None:
        return self._confined(super().notify_aborted(checkpoint_id, failed))

    def lost(self) -> Failure | None:
        failure = self._failures.failure
        if failure is not None:
            return self._with_reason(failure)
        return self._lost_running() or self._unreadable

    def _lost_running(self) -> Failure | None:
        """Return a failure if the slot of a subtask that runs is gone."""
        gone = self._lost_subtasks(()) & self._attempts.keys()
        for number in sorted({self._slot_of(subtask) for subtask in gone}):
            ended = self.pool.slots[number].process.wait_for_end()
            return Failure(SlotLostError(number, ended or "its process ended"), number, frozenset(gone))
        return None

    def _confined(self, failure: Failure | None) -> Failure | None:
        """Name the subtasks of slots that are gone: all other slots have performed the request."""
        lost = None
        if failure is not None and isinstance(failure.error, SlotLostError):
            lost = self._lost_running()
        return lost or failure

    def close_subtasks(self) -> Failure | None:
        failure = super().close_subtasks()
        self._end_flows(frozenset(self._regions.values()), in_order=failure is None)
        return failure

    def shutdown(self) -> None:
        self._end_flows(frozenset(self._regions.values()), in_order=False)
        super().shutdown()

    # ------------------------------------------------------------------------------------------- from the slots

    def _take_flow(self, event: FlowEvent) -> None:
        match event:
            case EpochAcknowledged(_, ack):
                subtask = SubtaskId(ack.vertex, ack.subtask)
                if self._attempts.get(subtask) == event.attempt:
                    add_output([ack], self._parts.pop(subtask, ()))
                    self._acks.add(ack)
            case OutputLeft(_, part):
                subtask = SubtaskId(part.vertex, part.subtask)
                if self._attempts.get(subtask) == event.attempt:
                    self._parts.setdefault(subtask, []).append(part)
                    self._output_bytes += part.size_bytes
            case SubtaskFailed(_, subtask, pickled):
                if self._attempts.get(subtask) == event.attempt:
                    self._failures.add(_error_of(subtask, pickled), {subtask})
            case _:
                assert_never(event)

    def _stop(self, error: Exception, subtasks: frozenset[SubtaskId] = frozenset()) -> None:
        """Note that some subtasks, or all of them, have failed. Thread-safe."""
        self._failures.add(error, subtasks)
        self.wake()

    def _slot_lost(self, number: int) -> None:
        hosted = frozenset(of for of in self._regions if of in self._attempts and self._slot_of(of) == number)
        if hosted:
            self._stop(SlotLostError(number, "it was given up"), hosted)

    def _epoch_stalled(self) -> None:
        self._stop(DeploymentError("the epoch has stalled"))

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
            failure = self._failures.failure or failure
        return failure


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
