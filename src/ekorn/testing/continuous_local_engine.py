"""The local engine for jobs that run continuously: the subtasks of the continuous engine, without processes.

Every epoch the sources read once and then put the mark of the epoch into the stream, so the same records share an epoch
as on `LocalEngine`. With `chance` given, subtasks take turns in an order that it draws, and sources read on behind the
mark: channels get ahead of each other, and marks have to be aligned, as they are between processes. Where marks may
overtake, subtasks get the order of an epoch at a moment that is drawn too.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Literal, NamedTuple

from ekorn.clock import Clock
from ekorn.engine.protocol import EpochResult, Failure
from ekorn.engine.slots.running_subtasks import EpochAcks
from ekorn.engine.subtask_outcome import add_output
from ekorn.errors import SlotLostError, UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import OutputPart
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot.host import SlotHost
from ekorn.slot_protocol.deployment import Deployment
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.continuous.channels import ContinuousChannels
from ekorn.subtask.continuous.continuous_subtask import ContinuousSubtask
from ekorn.subtask.continuous.source import ContinuousSource, run_continuously
from ekorn.subtask.outbox import Emitted
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import ReceivedBlob
from ekorn.testing.local_engine import InProcessEngine
from ekorn.types.by_value import dumps

__all__ = ["ContinuousLocalEngine", "PollLimits"]

_READ_AHEAD = 4  # turns that a source may take behind a mark that is on its way
_ORDERS_AHEAD = 0.1  # how often the driver is asked for the next order while an epoch is on its way
_ATTENDS = 0.5  # how often a subtask lets a mark overtake rather than process a blob


class PollLimits(NamedTuple):
    """The most that a source reads in one turn."""

    max_records: int
    max_ms: int
    max_bytes: int


class ContinuousLocalEngine(InProcessEngine):
    """Runs one job inside the calling process, with epochs that are marks in the stream.

    Args:
        graph: The job.
        clock: The clock of the subtasks.
        chance: Draws the order in which subtasks take turns; None: level by level.

    Attributes:
        poll_limits: The most that a source reads in one turn.
    """

    poll_limits = PollLimits(max_records=1_000, max_ms=50, max_bytes=64 << 20)

    def __init__(self, graph: JobGraph, clock: Clock | None = None, chance: Random | None = None) -> None:
        super().__init__(graph, clock)
        self._chance = chance
        self._running: dict[SubtaskId, ContinuousSubtask] = {}  # level by level
        self._acks = EpochAcks()
        self._ordered = -1  # the newest epoch whose marks are on their way
        self.next_order: Callable[[], MarkOrder | None] | None = None
        self._parts: list[OutputPart] = []  # since the last acknowledgement of their subtask
        self.deferred_blobs = 0  # blobs that had to wait for the marks of other channels
        self.overtaken_blobs = 0  # blobs that marks have overtaken
        self.orders_ahead = 0  # epochs that began before the one before had ended

    @property
    def execution(self) -> Literal["continuous"]:
        return "continuous"

    @property
    def mark_interval_ms(self) -> int:
        return 5

    def _lay_out(self, graph: JobGraph) -> None:
        super()._lay_out(graph)
        self._targets = {e.id: e.target for e in graph.exchanges}

    def deploy(self, deployment: Deployment) -> Failure | None:
        if deployment.only is None:
            self._running.clear()
            self._acks.clear()
            self._parts = []
        else:
            self.set_aside(deployment.only)
        failure = super().deploy(replace(deployment, continuous=True))
        if failure is not None:
            if deployment.only is not None and isinstance(failure.error, UserFunctionError):
                return replace(failure, subtasks=deployment.only)
            return failure
        going_on, self._running = self._running, {}
        for level in self._graph.levels:
            for vertex in level:
                for index in range(vertex.parallelism):
                    host, subtask_id = self.hosts[self._graph.slot_of(vertex, index)], SubtaskId(vertex.id, index)
                    self._running[subtask_id] = going_on.get(subtask_id) or run_continuously(
                        host.subtasks[subtask_id], _InProcessServices(self, host, subtask_id)
                    )
        return None

    def set_aside(self, subtasks: frozenset[SubtaskId]) -> None:
        self._running = {of: each for of, each in self._running.items() if of not in subtasks}
        self._acks.drop(subtasks)
        self._parts = [part for part in self._parts if SubtaskId(part.vertex, part.subtask) not in subtasks]
        for host in self.hosts:
            with host.user_code:
                host.discard(subtasks)

    def run_others(self, order: MarkOrder, within_s: float) -> EpochResult[MarkAck] | None:
        return self.run_epoch(order)  # nothing keeps a mark from coming

    def run_epoch(self, order: MarkOrder) -> EpochResult[MarkAck]:
        step = self._take_turns if self._chance is None else self._take_turns_by_chance
        for subtask_id, subtask in self._running.items():
            failure = self._turn(subtask_id, subtask.advance_clock)
            if failure is not None:
                return EpochResult(failure=failure)
        failure = step(order)
        if failure is not None:
            return EpochResult(failure=failure)
        return EpochResult(self._acks.take(order.number, self._running))

    def _take_turns(self, order: MarkOrder) -> Failure | None:
        not_read = {of: each for of, each in self._running.items() if isinstance(each, ContinuousSource)}
        for subtask_id, subtask in self._running.items():

            def run(subtask: ContinuousSubtask = subtask) -> None:
                if isinstance(subtask, ContinuousSource):
                    self._read(subtask, order)
                    subtask.give_order(order)
                else:
                    subtask.emit_periodic_watermarks()
                while subtask.has_input:
                    subtask.take()

            not_read.pop(subtask_id, None)
            failure = self._turn(subtask_id, run)
            if failure is not None:
                _give_all(not_read.values(), order)
                return failure
        return None

    def _take_turns_by_chance(self, order: MarkOrder) -> Failure | None:
        assert self._chance is not None
        sources = {of: each for of, each in self._running.items() if isinstance(each, ContinuousSource)}
        channels = {of: each for of, each in self._running.items() if isinstance(each, ContinuousChannels)}
        turns_left = dict.fromkeys(sources, _READ_AHEAD)
        not_read = set(sources) if order.number > self._ordered else set()
        self._ordered = max(self._ordered, order.number)
        not_told = set(channels) if order.overtakes_after_ms is not None else set()
        while not self._acks.are_complete(order.number, self._running) or any(
            each.is_recording for each in channels.values()
        ):
            if self.next_order is not None and not not_read and self._chance.random() < _ORDERS_AHEAD:
                self._give_ahead(list(sources.values()))
            may_turn = [of for of, each in self._running.items() if each.has_input]
            may_turn += [of for of, each in sources.items() if turns_left[of] and not each.has_input]
            may_attend = [of for of, each in channels.items() if of in not_told or each.has_urgent]
            chosen = self._chance.choice(may_turn + may_attend)
            subtask = self._running[chosen]
            if chosen in may_attend and (chosen not in may_turn or self._chance.random() < _ATTENDS):
                if chosen in not_told:
                    not_told.discard(chosen)
                    channels[chosen].give_order(order)
                failure = self._turn(chosen, channels[chosen].handle_urgent)
            elif subtask.has_input:
                failure = self._turn(chosen, subtask.take)
            else:
                source = sources[chosen]
                turns_left[chosen] -= 1
                failure = self._turn(chosen, partial(self._read, source, order))
                if chosen in not_read:
                    not_read.discard(chosen)
                    source.give_order(order)
            if failure is not None:
                _give_all([sources[of] for of in not_read if of != chosen], order)
                return failure
        return None

    def _read(self, source: ContinuousSource, order: MarkOrder) -> None:
        """Let a source read once, with its periodic watermark."""
        if source.may_read and not order.drain:
            source.poll(*self.poll_limits)
            source.emit_periodic_watermarks()
            source.flush()

    def _give_ahead(self, sources: list[ContinuousSource]) -> None:
        """Let the marks of the next epoch follow, if the driver wants that."""
        ahead = self._ask_for_order()
        if ahead is not None:
            self._ordered = ahead.number
            self.orders_ahead += 1
            for source in sources:
                source.give_order(ahead)

    def _ask_for_order(self) -> MarkOrder | None:
        return None if self.next_order is None else self.next_order()

    def _turn(self, subtask_id: SubtaskId, call: Callable[[], object]) -> Failure | None:
        """Give a subtask a turn; return the failure if it raised an exception, or if its slot is gone."""
        slot = self._slot_of(subtask_id)
        if self._cancelled:
            return Failure(SlotLostError(0, "the job was cancelled"))
        host = self.hosts[slot]
        try:
            with host.user_code:
                host.thread, host.running = threading.get_ident(), subtask_id
                call()
        except Exception as error:
            return Failure(error, slot, self._gone() | {subtask_id})
        finally:
            host.running = None
        return None

    def _slot_of(self, subtask_id: SubtaskId) -> int:
        return self._graph.slot_of(self._graph.vertices[subtask_id.vertex], subtask_id.subtask)

    def _gone(self) -> frozenset[SubtaskId]:
        """Return the subtasks that ran in a slot which has lost them, as a slot process that has ended."""
        return frozenset(of for of in self._running if of not in self.hosts[self._slot_of(of)].subtasks)

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        return self._confined(super().notify_completed(checkpoint_id))

    def notify_aborted(self, checkpoint_id: int, failed: frozenset[SubtaskId] = frozenset()) -> Failure | None:
        for subtask in self._running.values():
            subtask.checkpoint_aborted(checkpoint_id)
        return self._confined(super().notify_aborted(checkpoint_id, failed))

    def _confined(self, failure: Failure | None) -> Failure | None:
        """Name the subtasks of slots that are gone: all other slots have been notified."""
        return replace(failure, subtasks=self._gone()) if failure is not None else None

    # ------------------------------------------------------------------------------------------ from the subtasks

    def deliver(self, item: Emitted) -> None:
        """Take what leaves a subtask."""
        if isinstance(item, OutputPart):
            self._parts.append(pickle.loads(dumps(item)))
            return
        target = self._running[SubtaskId(self._targets[item.exchange], item.target)]
        target.give(item)

    def acknowledged(self, ack: MarkAck) -> None:
        """Take the acknowledgement of a subtask, and the parts of its output that came before."""
        mine = [part for part in self._parts if (part.vertex, part.subtask) == (ack.vertex, ack.subtask)]
        self._parts = [part for part in self._parts if part not in mine]
        own: MarkAck = pickle.loads(dumps(ack))
        add_output([own], mine)
        self._acks.add(own)


class _InProcessServices:
    """Passes what leaves a subtask to other subtasks of the same process."""

    def __init__(self, engine: ContinuousLocalEngine, host: SlotHost, subtask_id: SubtaskId) -> None:
        self._engine = engine
        self._host = host
        self._subtask_id = subtask_id
        self.send = engine.deliver
        self.acknowledge = engine.acknowledged

    def taken(self, blob: ReceivedBlob) -> None:
        """Do nothing: no queue is bounded here."""

    def defer(self, blob: ReceivedBlob) -> ReceivedBlob:
        self._engine.deferred_blobs += 1
        return blob

    def released(self) -> None:
        """Do nothing: blobs wait in memory here."""

    def record(self, blob: ReceivedBlob) -> ReceivedBlob:
        self._engine.overtaken_blobs += 1
        return blob

    def capture(self, subtask: Subtask, order: MarkOrder) -> CapturedSubtask | None:
        return self._host.capture(self._subtask_id, order)

    def write(self, captured: CapturedSubtask) -> None:
        self._host.write(captured)


def _give_all(sources: Iterable[ContinuousSource], order: MarkOrder) -> None:
    """Give an order to the sources that have not had it, as slots get orders all at once: regions go on with it."""
    for source in sources:
        source.give_order(order)
