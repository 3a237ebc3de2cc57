"""The base of engines with slot processes that run jobs continuously: everything but how blobs move between the slots.

An attempt is one flow of blobs through all subtasks. An epoch is an order to the sources, and an answer of every
subtask once the mark of the epoch has passed through it. A failure anywhere ends the attempt.
"""

from __future__ import annotations

import pickle
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from tamias.engine.protocol import EpochResult, Failure
from tamias.engine.slots.slot_engine import SlotEngine
from tamias.engine.slots.slot_pool import SlotPool
from tamias.engine.subtask_outcome import add_output
from tamias.errors import DeploymentError, SlotLostError
from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph
from tamias.operators.epoch import Ack, EpochOrder, OutputPart
from tamias.slot.deployment import Deployment
from tamias.slot.messages import HoldSources, OrderEpoch
from tamias.slot.slot_events import EpochAcknowledged, FlowEvent, OutputLeft, SubtaskFailed

__all__ = ["MARK_INTERVAL_MS", "ContinuousSlotEngine"]

MARK_INTERVAL_MS = 200
_OUTPUT_BYTES = 64 << 20  # of output that waits for the end of an epoch: above it, the sources read nothing until then
_POLL_S = 0.05  # how often a lost slot is looked for while an epoch runs
_PATIENCE_S = 1.0  # how long a more telling failure is waited for after a broken connection


class ContinuousSlotEngine(SlotEngine):
    """Hosts a job in slot processes that run it continuously. A subclass carries the blobs."""

    def __init__(self, graph: JobGraph, pool: SlotPool, stall_timeout_s: float) -> None:
        super().__init__(graph, pool, stall_timeout_s)
        self._subtasks = frozenset(SubtaskId(v.id, index) for v in graph.vertices for index in range(v.parallelism))
        self._acks: dict[int, dict[SubtaskId, Ack]] = {}  # by epoch
        self._ordered = -1  # the newest epoch whose marks are on their way
        self.next_order: Callable[[], EpochOrder | None] | None = None
        self._parts: dict[SubtaskId, list[OutputPart]] = {}  # since the last acknowledgement of the subtask
        self._output_bytes = 0  # of the parts, and of those that acknowledgements of the running epoch have taken
        self._failure: Failure | None = None  # of the attempt
        self._has_reason = False  # the reason of the failure was waited for

    @property
    def mark_interval_ms(self) -> int | None:
        return MARK_INTERVAL_MS

    @abstractmethod
    def _start_flow(self, deployment: Deployment) -> None:
        """Carry blobs between the slots from now on."""

    @abstractmethod
    def _end_flow(self, *, in_order: bool) -> None:
        """Carry no more blobs: the attempt is over.

        Args:
            in_order: The subtasks are closed, and the flow ends by itself. Else it goes on until it is broken off.
        """

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt: every subtask restarts, since each may have passed the mark of the last epoch."""
        self._end_flow(in_order=False)
        self._acks.clear()
        self._parts.clear()
        self._output_bytes = 0
        self._failure, self._has_reason = None, False
        deployment = replace(deployment, continuous=True, only=None)
        failure = super().deploy(deployment)
        if failure is None:
            self._start_flow(deployment)
        return failure

    def _run_levels(self, order: EpochOrder) -> EpochResult:
        """Order the mark of an epoch, and wait until it has passed through every subtask."""
        assert self._deployment is not None, "deploy comes before the first epoch"
        failure = self.lost() or (self._send(order) if order.number > self._ordered else None)
        acks, holds = self._acks.setdefault(order.number, {}), False
        while failure is None and len(acks) < len(self._subtasks):
            self.wait(_POLL_S)
            failure = self.lost() or self._send_next()
            if failure is None and self._output_bytes >= _OUTPUT_BYTES and not holds:
                holds, failure = True, self._ask_each(HoldSources(self._deployment.attempt))
        if failure is not None:
            return EpochResult(failure=failure)
        del self._acks[order.number]
        self._output_bytes = sum(part.size_bytes for parts in self._parts.values() for part in parts)
        return EpochResult([acks[subtask] for subtask in sorted(self._subtasks)])

    def _send(self, order: EpochOrder) -> Failure | None:
        assert self._deployment is not None
        self._ordered = order.number
        return self._ask_each(OrderEpoch(self._deployment.attempt, order))

    def _send_next(self) -> Failure | None:
        """Send the marks of the next epoch too, if the driver wants that."""
        order = None if self.next_order is None else self.next_order()
        return None if order is None else self._send(order)

    def lost(self) -> Failure | None:
        if self._failure is not None:
            self._failure = self._with_reason(self._failure)
        return self._failure or super().lost()

    def close_subtasks(self) -> Failure | None:
        failure = super().close_subtasks()
        self._end_flow(in_order=failure is None)
        return failure

    def shutdown(self) -> None:
        self._end_flow(in_order=False)
        super().shutdown()

    # ------------------------------------------------------------------------------------------- from the slots

    def _take_flow(self, event: FlowEvent) -> None:
        if self._deployment is None or event.attempt != self._deployment.attempt:
            return
        match event:
            case EpochAcknowledged(_, ack):
                subtask = SubtaskId(ack.vertex, ack.subtask)
                add_output([ack], self._parts.pop(subtask, ()))
                self._acks.setdefault(ack.epoch, {})[subtask] = ack
            case OutputLeft(_, part):
                self._parts.setdefault(SubtaskId(part.vertex, part.subtask), []).append(part)
                self._output_bytes += part.size_bytes
            case SubtaskFailed(_, subtask, pickled):
                self._fail(_error_of(subtask, pickled))
            case _:
                assert_never(event)

    def _fail(self, error: BaseException) -> None:
        """Note the failure of the attempt. An error of the user's code says more than a connection that broke then."""
        if self._failure is None or isinstance(self._failure.error, (SlotLostError, DeploymentError)):
            self._failure = Failure(error)

    def _stop(self, error: Exception) -> None:
        """End the attempt. Thread-safe."""
        self._fail(error)
        self.wake()

    def _with_reason(self, failure: Failure) -> Failure:
        """Return the failure, or the one that was its reason: a connection breaks when something else has failed."""
        if self._has_reason:
            return failure
        self._has_reason = True
        deadline = time.monotonic() + _PATIENCE_S
        while isinstance(failure.error, (SlotLostError, DeploymentError)) and time.monotonic() < deadline:
            lost = self._lost_slot()
            if lost is not None:
                return Failure(lost, lost.slot)
            self.wait(_POLL_S)
            failure = self._failure or failure
        return failure


def _error_of(subtask: SubtaskId, pickled: bytes) -> BaseException:
    """Unpickle the error of a subtask; whatever its class does then, the failure of the subtask is known."""
    try:
        error: BaseException = pickle.loads(pickled)
    except Exception as problem:
        return DeploymentError(f"{subtask} has failed, and its error cannot be read in the driver: {problem!r}")
    return error
