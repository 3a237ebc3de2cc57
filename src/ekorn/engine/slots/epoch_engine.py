"""The engine of jobs that run in epochs: an epoch runs level by level, and its outcomes decide what it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from ekorn.engine.protocol import EpochResult, Failure
from ekorn.engine.slots.slot_calls import SlotCalls, subtasks_in
from ekorn.engine.slots.slot_engine import Platform, SlotEngine
from ekorn.engine.subtask_outcome import SubtaskFailure, add_output
from ekorn.errors import SlotLostError, SlotMemoryError, UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import in_regions_of
from ekorn.operators.epoch import EpochAck, EpochOrder, OutputPart
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.messages import CutEpoch
from ekorn.slot_protocol.slot_events import FlowEvent

__all__ = ["EpochSlotEngine", "LevelRunner"]


class LevelRunner(Protocol):
    """Runs the levels of an epoch, and carries the blobs from one level to the next."""

    def lay_out(self, graph: JobGraph) -> None:
        """Note the graph of the next epochs."""

    def begin_attempt(self) -> None:
        """Drop the connections of the attempt before: slots may be replaced."""

    def run(self, order: EpochOrder, attempt: int) -> list[EpochAck | OutputPart | SubtaskFailure] | Failure:
        """Push one epoch through all levels; return the outcomes of the subtasks, or why there are none."""

    def waits_for_resources(self) -> bool:
        """Return whether nothing moves because nothing runs yet. Thread-safe."""

    def stop_stalled(self) -> None:
        """Make `run` return soon: an epoch makes no progress. Thread-safe."""

    def stop_waiting_for(self, slot: int) -> None:
        """Make `run` return soon: a slot was given up and will not answer. Thread-safe."""

    def cancel(self) -> None:
        """Make `run` return soon, now and from now on: the job was cancelled. Thread-safe."""

    def close(self) -> None:
        """Release everything. The slots have ended."""


class EpochSlotEngine(SlotEngine):
    """Hosts a job in slot processes that run it in epochs.

    Args:
        graph: The job.
        calls: The slots of the job.
        platform: What the job runs on.
        levels: Runs the levels of its epochs.
        stall_timeout_s: How long an epoch may make no progress before it fails.
    """

    def __init__(
        self, graph: JobGraph, calls: SlotCalls, platform: Platform, levels: LevelRunner, stall_timeout_s: float
    ) -> None:
        super().__init__(graph, calls, platform, stall_timeout_s)
        self._levels = levels
        self._lay_out(graph)

    def _lay_out(self, graph: JobGraph) -> None:
        self._levels.lay_out(graph)

    def deploy(self, deployment: Deployment) -> Failure | None:
        self._levels.begin_attempt()
        return super().deploy(deployment)

    @property
    def execution(self) -> Literal["epochs"]:
        return "epochs"

    def run_epoch(self, order: EpochOrder) -> EpochResult[EpochAck]:
        return self._run_watched(order, self._run)

    def _run(self, order: EpochOrder) -> EpochResult[EpochAck]:
        outcomes = self._levels.run(order, self._attempt)
        return EpochResult(failure=outcomes) if isinstance(outcomes, Failure) else self._result(outcomes)

    def _result(self, outcomes: list[EpochAck | OutputPart | SubtaskFailure]) -> EpochResult[EpochAck]:
        """Combine the outcomes of an epoch's subtasks, and their output."""
        acks = sorted((o for o in outcomes if isinstance(o, EpochAck)), key=lambda a: (a.vertex, a.subtask))
        add_output(acks, [o for o in outcomes if isinstance(o, OutputPart)])
        errors = {o.subtask: o.error for o in outcomes if isinstance(o, SubtaskFailure)}
        if not errors:
            return EpochResult(acks)
        first = min(errors.values(), key=lambda error: not isinstance(error, UserFunctionError))
        # A lost slot loses all of its subtasks, including those whose epoch had succeeded.
        lost = self._calls.gone() | {error.slot for error in errors.values() if isinstance(error, SlotLostError)}
        failed = frozenset(errors) | subtasks_in(self._graph, lost)
        hit = in_regions_of(self._graph, failed)
        rest = [ack for ack in acks if (ack.vertex, ack.subtask) not in hit]
        return EpochResult(rest, Failure(self._with_cause(first, errors), subtasks=failed))

    def _with_cause(self, error: BaseException, errors: Mapping[SubtaskId, BaseException]) -> BaseException:
        """Return the error; in place of a broken connection, say how the slot ended and what it was running.

        This waits for a process that is still ending, so that the next attempt does not take it for alive.
        """
        if not isinstance(error, SlotLostError):
            return error
        slot = self.pool.slots[error.slot]
        ended = slot.process.wait_for_end()
        if ended is None:
            return self._calls.lost_slot() or error
        if isinstance(own := slot.loss(ended), SlotMemoryError):
            return own
        left = [of for of, found in errors.items() if isinstance(found, SlotLostError) and found.slot == error.slot]
        ran = ", ".join(f"{self._graph.vertices[of.vertex].name!r} (subtask {of.subtask})" for of in sorted(left))
        return SlotLostError(error.slot, f"{ended} while it ran {ran}")

    def cut_epoch(self, number: int) -> None:
        attempt = self._deployments.attempt
        if attempt is not None:  # else nothing runs yet
            self._diagnostics.cut_epoch(CutEpoch(attempt, number))

    def _waits_for_resources(self) -> bool:
        return self._levels.waits_for_resources()

    def _epoch_stalled(self) -> None:
        self._levels.stop_stalled()

    def _slot_lost(self, number: int) -> None:
        self._levels.stop_waiting_for(number)

    def _cancel(self) -> None:
        self._levels.cancel()

    def _take_flow(self, event: FlowEvent) -> None:
        """Do nothing: subtasks that run in epochs report no such events."""

    def shutdown(self) -> None:
        self._levels.close()
        super().shutdown()
