"""The engine for tests, of ekorn and of its users: all slots in one process, each level a loop.

It runs the same subtasks with the same blobs as the Spark engine, so a job has the same results on both. What only
processes and Spark can break is tested on Spark.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal

import cloudpickle

from ekorn.clock import Clock, SystemClock
from ekorn.engine.protocol import EpochResult, Failure
from ekorn.engine.subtask_outcome import add_output
from ekorn.errors import CorruptFileError, QueryableNameTwice, QueryError, SlotLostError, StateNotServed
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import in_regions_of
from ekorn.metrics.thread_stacks import ThreadStack, thread_stacks
from ekorn.operators.epoch import EpochAck, EpochOrder, OutputPart
from ekorn.slot.host import SlotHost
from ekorn.slot.stack_sampling import sample_stacks
from ekorn.slot.vitals import own_vitals
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, SlotVitals, StackSample
from ekorn.slot_protocol.preload_plan import PreloadPlan, preload_plans
from ekorn.slot_protocol.slot_events import SlotEvent
from ekorn.slot_protocol.state_query import RESCALED, Found, QueryableState, StateQuery, check_names, slot_of_query
from ekorn.state.snapshots import RestorePlan
from ekorn.subtask.wire.frames import Blob
from ekorn.types.by_value import dumps


class InProcessEngine:
    """Hosts one job inside the calling process. A subclass runs the epochs."""

    task_slots: int | None = None  # a test sets how many there are

    def __init__(self, graph: JobGraph, clock: Clock | None = None) -> None:
        self._slots_clock = clock or SystemClock()
        self._events: queue.SimpleQueue[SlotEvent | None] = queue.SimpleQueue()
        self._held: list[SlotEvent] = []
        self.hosts: list[SlotHost] = []
        self._lay_out(graph)
        self._attempt = 0
        self._queryable: tuple[QueryableState, ...] = ()  # states of the last deployment
        self._cancelled = False

    def _lay_out(self, graph: JobGraph) -> None:
        """Have as many slots as a graph needs."""
        self._graph = graph
        for host in self.hosts[graph.slot_count :]:
            with host.user_code:
                host.shutdown()
        del self.hosts[graph.slot_count :]
        for number in range(len(self.hosts), graph.slot_count):
            self.hosts.append(self._make_host(number, self._slots_clock, self._events.put))

    def _make_host(self, slot: int, clock: Clock, report: Callable[[SlotEvent], None]) -> SlotHost:
        return SlotHost(slot, clock, report)

    @property
    def in_process(self) -> bool:
        return True

    @property
    def shares_disk(self) -> bool:
        return True

    def needed_task_slots(self, graph: JobGraph) -> int:
        return graph.slot_count

    def prepare(self, graph: JobGraph) -> None:
        """Drop what was read in advance. A slot is an object, and nothing else is to be made ready."""
        for host in self.hosts:
            host.preload(PreloadPlan())

    def preload(self, graph: JobGraph, plan: RestorePlan) -> None:
        """Read state into the slots that go on. The others read theirs when they are made."""
        plans = preload_plans(graph, plan)
        for host in self.hosts[: graph.slot_count]:
            with contextlib.suppress(CorruptFileError, OSError):  # the deployment finds it as well
                host.preload(plans[host.slot])

    @property
    def slot_pids(self) -> tuple[int, ...]:
        return ()

    def thread_stacks(self, slot: int) -> list[ThreadStack]:
        return thread_stacks()

    def sample_stacks(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        return sample_stacks(self.hosts[slot], plan)

    def recent_log(self, slot: int) -> SlotLogs | None:
        return None  # the driver's log is that of its process

    def vitals(self, slot: int) -> SlotVitals:
        return own_vitals(self.hosts[slot])  # of this process, which has all slots, and the states of this one

    @property
    def description(self) -> str:
        return "this process, without Spark"

    @property
    def log_path(self) -> str | None:
        return None

    def keep_log(self) -> str | None:
        return None

    def deploy(self, deployment: Deployment) -> Failure | None:
        if deployment.graph is not self._graph:
            self._lay_out(deployment.graph)
        self._attempt = deployment.attempt
        for number, host in enumerate(self.hosts):
            subtasks = [
                SubtaskId(vertex.id, index)
                for vertex in deployment.graph.vertices
                for index in range(vertex.parallelism)
                if deployment.graph.slot_of(vertex, index) == number
            ]
            # Each slot has its own copy of the user's functions, as slot processes have.
            own_copy: Deployment = pickle.loads(cloudpickle.dumps(deployment))
            try:
                with host.user_code:
                    host.deploy(own_copy, subtasks)
            except Exception as error:
                return Failure(error, number)
        self._queryable = tuple(dict.fromkeys(state for host in self.hosts for state in host.queryable_states()))
        try:
            check_names(self._queryable)
        except QueryableNameTwice as error:
            return Failure(error)
        return None

    def queryable_states(self) -> tuple[QueryableState, ...]:
        return self._queryable

    def look_up(self, query: StateQuery) -> Future[list[bytes | None]]:
        done: Future[list[bytes | None]] = Future()
        found = self._look_up(query)
        done.set_exception(found) if isinstance(found, QueryError) else done.set_result(found)
        return done

    def _look_up(self, query: StateQuery) -> Found:
        hosts = list(self.hosts)  # another thread may deploy another graph meanwhile
        try:
            slot = slot_of_query(self._graph, query)
        except StateNotServed as error:
            return error
        if slot >= len(hosts):
            return StateNotServed(query.name, RESCALED)
        return hosts[slot].look_up_all([query])[0]

    def events(self) -> list[SlotEvent]:
        found, self._held = self._held, []
        with contextlib.suppress(queue.Empty):
            while True:
                event = self._events.get_nowait()
                if event is not None:
                    found.append(event)
        return found

    def wait(self, timeout_s: float) -> None:
        with contextlib.suppress(queue.Empty):
            event = self._events.get(timeout=max(timeout_s, 0.0))
            if event is not None:
                self._held.append(event)

    def wake(self) -> None:
        self._events.put(None)

    def lost(self) -> Failure | None:
        """Return None: slots are objects in this process and cannot be lost."""
        return None

    def cancel_epoch(self) -> None:
        self._cancelled = True

    def cut_epoch(self, number: int) -> None:
        for host in self.hosts:
            host.epoch_cut.cut(number)

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        return self._each(lambda host: host.checkpoint_completed(checkpoint_id))

    def notify_aborted(self, checkpoint_id: int, failed: frozenset[SubtaskId] = frozenset()) -> Failure | None:
        return self._each(lambda host: host.checkpoint_aborted(checkpoint_id, failed))

    def close_subtasks(self) -> Failure | None:
        return self._each(lambda host: host.close_subtasks())

    def _each(self, call: Callable[[SlotHost], None]) -> Failure | None:
        first: Failure | None = None
        for host in self.hosts:
            try:
                with host.user_code:
                    call(host)
            except Exception as error:
                first = first or Failure(error, host.slot)
        return first

    def shutdown(self) -> None:
        for host in self.hosts:
            with host.user_code:
                host.shutdown()


class LocalEngine(InProcessEngine):
    """Runs one job inside the calling process, in epochs."""

    @property
    def execution(self) -> Literal["epochs"]:
        return "epochs"

    def run_epoch(self, order: EpochOrder) -> EpochResult[EpochAck]:
        inboxes: dict[SubtaskId, list[Blob]] = {}
        acks: list[EpochAck] = []
        parts: list[OutputPart] = []
        failure: Failure | None = None
        hit: frozenset[SubtaskId] = frozenset()  # subtasks that do not run: a subtask of their region has failed
        targets = {e.id: e.target for e in self._graph.exchanges}
        for level in self._graph.levels:
            for vertex in level:
                for index in range(vertex.parallelism):
                    if self._cancelled:
                        return EpochResult(failure=Failure(SlotLostError(0, "the job was cancelled")))
                    subtask = SubtaskId(vertex.id, index)
                    if subtask in hit:
                        continue
                    host = self.hosts[self._graph.slot_of(vertex, index)]
                    blobs = inboxes.pop(subtask, [])
                    try:
                        with host.user_code:
                            for item in host.run(subtask, self._attempt, order, blobs):
                                if isinstance(item, EpochAck):
                                    acks.append(pickle.loads(dumps(item)))
                                elif isinstance(item, OutputPart):
                                    parts.append(pickle.loads(dumps(item)))
                                else:
                                    inboxes.setdefault(SubtaskId(targets[item.exchange], item.target), []).append(item)
                    except Exception as error:
                        failed = frozenset({subtask}) | (failure.subtasks if failure else frozenset())
                        failure = Failure(failure.error if failure else error, host.slot, failed)
                        hit = in_regions_of(self._graph, failed)
        add_output(acks, parts)
        acks = [ack for ack in acks if (ack.vertex, ack.subtask) not in hit]
        return EpochResult(sorted(acks, key=lambda a: (a.vertex, a.subtask)), failure)
