"""An engine with real slot processes and no JVM: the driver itself carries the blobs from level to level.

The slots are those of a real job: the same processes, connections, heartbeats and lifelines. A test sees in a second
what a `kill -9`, a `SIGSTOP` or a lost driver does to a job; Spark takes ten seconds to start.

    with on_process_engine():
        env.execute()
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.loop.job_loop import EngineFactory
from ekorn.driver.submit import heartbeat_of, jobs_submitted_by, submit
from ekorn.engine.execution import reason_for_epochs
from ekorn.engine.protocol import Failure
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.engine.slots.slot_calls import SlotCalls, slot_of
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.task_side.level_task import SubtaskCall
from ekorn.engine.subtask_outcome import SubtaskFailure, SubtaskOutcome
from ekorn.errors import DeploymentError, SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import in_regions_of
from ekorn.links.link import Link, connect
from ekorn.operators.epoch import EpochAck, EpochOrder, OutputPart
from ekorn.slot_protocol.task_messages import RunEpoch
from ekorn.subtask.wire.frames import destination_of
from ekorn.testing.continuous_process_engine import continuous_process_engine
from ekorn.testing.slot_processes import ThisMachine, slot_processes
from ekorn.types.by_value import dumps

__all__ = ["ProcessLevels", "on_process_engine", "process_engine"]

MOST_THREADS = 64  # subtasks of a level that run at the same time

Inboxes = dict[SubtaskId, list[bytes]]  # encoded blobs by target
_SubtaskResult: TypeAlias = tuple[list[EpochAck | OutputPart | SubtaskFailure], Inboxes]


def process_engine(
    graph: JobGraph, pool: SlotPool | None = None, stall_timeout_s: float = Heartbeat().stall_timeout_s
) -> EpochSlotEngine:
    """Make an engine that runs one job in slot processes of this machine.

    Args:
        graph: The job.
        pool: The slots; by default children of this process.
        stall_timeout_s: When an epoch without progress is given up.
    """
    calls = SlotCalls(pool or slot_processes(graph.slot_count))
    return EpochSlotEngine(graph, calls, ThisMachine(), ProcessLevels(calls), stall_timeout_s)


class ProcessLevels:
    """Runs the levels of epochs one after another. The subtasks of a level run at the same time, as on Spark.

    Args:
        calls: The slots of the job.
    """

    def __init__(self, calls: SlotCalls) -> None:
        self._pool = calls.pool
        self._cancelled = calls.cancelled
        self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="epoch")
        self._links: dict[SubtaskId, Link] = {}  # one for each subtask, as each Spark task has its own
        self._lock = threading.Lock()

    def lay_out(self, graph: JobGraph) -> None:
        self._graph = graph
        self._targets = {e.id: e.target for e in graph.exchanges}

    def begin_attempt(self) -> None:
        self._hang_up(lambda slot: True)

    def run(self, order: EpochOrder, attempt: int) -> list[EpochAck | OutputPart | SubtaskFailure] | Failure:
        """Run level after level. After a failure the rest of its region does not run."""
        inboxes: Inboxes = {}
        outcomes: list[EpochAck | OutputPart | SubtaskFailure] = []
        hit: frozenset[SubtaskId] = frozenset()
        for level in self._graph.levels:
            if self._cancelled.is_set():
                return Failure(DeploymentError("the epoch was cancelled"))
            runs = [
                self._threads.submit(self._run, subtask, RunEpoch(subtask, attempt, order), inboxes.pop(subtask, []))
                for subtask in (SubtaskId(vertex.id, index) for vertex in level for index in range(vertex.parallelism))
                if subtask not in hit
            ]
            for run in runs:
                found, sent = run.result()
                outcomes += found
                for to, blobs in sent.items():
                    inboxes.setdefault(to, []).extend(blobs)
            failed = frozenset(o.subtask for o in outcomes if isinstance(o, SubtaskFailure))
            hit = in_regions_of(self._graph, failed)
        return outcomes

    def _run(self, subtask: SubtaskId, request: RunEpoch, blobs: list[bytes]) -> _SubtaskResult:
        """Run one subtask's epoch; return its output and its acknowledgement or failure, and the blobs it sent."""
        slot = slot_of(self._graph, subtask)
        sent: Inboxes = {}
        outcomes: list[EpochAck | OutputPart | SubtaskFailure] = []
        try:
            call = SubtaskCall(lambda: self._link(slot, subtask), request)
            for blob in blobs:
                call.give(blob)
            for item in call.answer():
                if isinstance(item, bytes):
                    exchange, target = destination_of(item)
                    sent.setdefault(SubtaskId(self._targets[exchange], target), []).append(item)
                elif isinstance(item, SubtaskOutcome) and not item.succeeded:
                    outcomes.append(SubtaskFailure(subtask, item.pickled))
                else:
                    outcomes.append(pickle.loads(item.pickled))
        except (OSError, EOFError) as error:
            outcomes.append(SubtaskFailure(subtask, dumps(SlotLostError(slot, str(error) or type(error).__name__))))
        return outcomes, sent

    def _link(self, slot: int, subtask: SubtaskId) -> Link:
        with self._lock:
            link = self._links.get(subtask)
        if link is None:
            link = connect(self._pool.slots[slot].address, self._pool.secret)
            with self._lock:
                if self._cancelled.is_set():  # `_hang_up` has already run, and would miss this connection
                    link.close()
                    raise OSError("the epoch was cancelled")
                self._links[subtask] = link
        return link

    @property
    def links(self) -> list[Link]:
        """The open connections over which subtasks get and send their blobs."""
        with self._lock:
            return list(self._links.values())

    def _hang_up(self, chosen: Callable[[int], bool]) -> None:
        with self._lock:
            for subtask in list(self._links):
                if chosen(slot_of(self._graph, subtask)):
                    self._links.pop(subtask).close()

    def waits_for_resources(self) -> bool:
        return False

    def stop_stalled(self) -> None:
        self._hang_up(lambda slot: True)

    def stop_waiting_for(self, slot: int) -> None:
        self._hang_up(lambda number: number == slot)

    def cancel(self) -> None:
        self._hang_up(lambda slot: True)

    def close(self) -> None:
        self._hang_up(lambda slot: True)
        self._threads.shutdown(wait=False)


@contextmanager
def on_process_engine(*, registering: bool = False, continuous: bool = False) -> Iterator[None]:
    """Run every `execute`, `execute_async` and `execute_and_collect` of this thread in slot processes, not on Spark.

    Args:
        registering: Start the slots as on a cluster.
        continuous: Run jobs continuously, except for those that need epochs.
    """

    def engine_for(settings: JobSettings) -> EngineFactory:
        heartbeat = heartbeat_of(settings)

        def make(graph: JobGraph) -> EpochSlotEngine | ContinuousSlotEngine:
            engine = continuous_process_engine if continuous and reason_for_epochs(graph) is None else process_engine
            pool = slot_processes(graph.slot_count, heartbeat, settings.links, registering=registering)
            return engine(graph, pool, heartbeat.stall_timeout_s)

        return make

    with jobs_submitted_by(partial(submit, engine_for=engine_for)):
        yield
