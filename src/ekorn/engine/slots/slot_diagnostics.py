"""What people and tools ask about running slots: stacks, samples, logs, process ids, and values of queryable state.

Everything here is thread-safe. A request has a connection of its own, and waits for nothing that runs in the slot.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future

from ekorn.engine.slots.slot_handle import SlotHandle
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.errors import SlotLostError, StateNotServed
from ekorn.graph.job_graph import JobGraph
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, SlotVitals, StackSample
from ekorn.slot_protocol.messages import CutEpoch
from ekorn.slot_protocol.state_query import StateQuery, slot_of_query

__all__ = ["SlotDiagnostics"]

_log = logging.getLogger(__name__)

_ANSWER_S = 10.0  # how long a slot may take to answer with its stacks or its log
_GLANCE_S = 2.0  # how long a slot may take to say what its process uses, which pages ask every few seconds


def _cut(slot: SlotHandle, request: CutEpoch) -> None:
    try:
        slot.cut_epoch(request, _GLANCE_S)
    except SlotLostError as error:  # the epoch ends later than it might, or fails as the loss of a slot lets it
        _log.debug("slot %d was not told to end epoch %d: %s", slot.number, request.number, error)


class SlotDiagnostics:
    """Asks the slots of a pool."""

    def __init__(self, pool: SlotPool) -> None:
        self._pool = pool

    @property
    def slot_pids(self) -> tuple[int, ...]:
        """The process ids of the slots, by slot number."""
        return tuple(slot.process.pid for slot in self._pool.slots)

    def thread_stacks(self, slot: int) -> list[ThreadStack]:
        """Return the stacks of a slot's threads."""
        return self._handle_of(slot).thread_stacks(_ANSWER_S)

    def sample_stacks(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        """Sample the stacks of a slot's subtasks for as long as the plan says."""
        return self._handle_of(slot).sample_stacks(plan, _ANSWER_S)

    def recent_log(self, slot: int) -> SlotLogs | None:
        """Return the last lines of a slot's log."""
        return self._handle_of(slot).recent_log(_ANSWER_S)

    def vitals(self, slot: int) -> SlotVitals:
        """Return what the process of a slot uses."""
        return self._handle_of(slot).vitals(_GLANCE_S)

    def cut_epoch(self, request: CutEpoch) -> None:
        """Let the sources of all slots end an epoch. A slot that does not answer delays no other."""
        threads = [
            threading.Thread(target=_cut, args=(slot, request), name="ekorn-cut-epoch", daemon=True)
            for slot in list(self._pool.slots)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()  # each ends within the time of an answer

    def _handle_of(self, slot: int) -> SlotHandle:
        slots = list(self._pool.slots)
        if slot >= len(slots):
            raise SlotLostError(slot, "it does not run now")
        return slots[slot]

    def look_up(self, graph: JobGraph, query: StateQuery) -> Future[list[bytes | None]]:
        """Return a future of the values of a queryable state, from the slot that has the query's keys."""
        refused: Future[list[bytes | None]] = Future()
        try:
            number = slot_of_query(graph, query)
        except StateNotServed as error:
            refused.set_exception(error)
            return refused
        slot = next((slot for slot in list(self._pool.slots) if slot.number == number), None)
        if slot is None:
            refused.set_exception(StateNotServed(query.name, "the slots of the job have ended"))
            return refused
        return slot.queries.ask(query)
