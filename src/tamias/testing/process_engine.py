"""The engine with real slot processes and no JVM: the driver itself carries the blobs from level to level.

The slots are those of a real job: the same processes, connections, heartbeats and lifelines. So what a `kill -9`, a
`SIGSTOP` or a lost driver does to a job can be seen in a second, where Spark needs ten to start.

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
from typing import Any

from tamias.config.job_settings import JobSettings
from tamias.config.python_dependencies import PythonDependencies
from tamias.driver.submit import jobs_submitted_by, submit
from tamias.engine.protocol import EpochResult, Failure
from tamias.engine.slots.pool import Heartbeat, SlotPool
from tamias.engine.slots.registering import Launch, RegisteringSlots
from tamias.engine.slots.slot_engine import SlotEngine, Slots
from tamias.errors import DeploymentError, SlotLostError
from tamias.graph.job_graph import JobGraph, Vertex
from tamias.graph.regions import in_regions_of
from tamias.operators.epoch import EpochOrder
from tamias.slot.caller import Failed, Outcome, run_subtask
from tamias.slot.deployment import Deployment
from tamias.slot.link import Link, connect
from tamias.slot.messages import RunEpoch
from tamias.subtask.wire.frames import destination_of
from tamias.types.by_value import dumps

__all__ = ["ProcessEngine", "on_process_engine"]

Inboxes = dict[tuple[int, int], list[bytes]]  # (vertex, subtask) -> blobs


class ProcessEngine(SlotEngine):
    """Runs one job in slot processes of this machine. The subtasks of a level run at the same time, as on Spark.

    Args:
        graph: The job.
        heartbeat: When a silent slot is given up.
        registering: Start the slots as on a cluster: they are not children of the driver, they register with it
            over TCP, and one that is given up cannot be killed, only left alone.
    """

    def __init__(self, graph: JobGraph, heartbeat: Heartbeat | None = None, *, registering: bool = False) -> None:
        super().__init__(graph, _slots(graph.slot_count, heartbeat or Heartbeat(), registering=registering))
        self._targets = {e.id: e.target for e in graph.exchanges}
        self._threads = ThreadPoolExecutor(graph.slot_count, thread_name_prefix="epoch")
        self._links: dict[tuple[int, int], Link] = {}  # one for each subtask, as each Spark task has its own
        self._lock = threading.Lock()
        self._cancelled = False

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt; connections to slots that were replaced are opened anew."""
        self._hang_up(lambda slot: True)
        return super().deploy(deployment)

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        """Run level after level; where a subtask fails, what is in its region runs no more."""
        assert self._deployment is not None, "deploy comes before the first epoch"
        inboxes: Inboxes = {}
        found: list[Any] = []
        hit: frozenset[tuple[int, int]] = frozenset()
        for level in self._graph.levels:
            if self._cancelled:
                return EpochResult(failure=Failure(DeploymentError("the epoch was cancelled")))
            runs = [
                self._threads.submit(self._run, vertex, index, order, inboxes.pop((vertex.id, index), []))
                for vertex in level
                for index in range(vertex.parallelism)
                if (vertex.id, index) not in hit
            ]
            for run in runs:
                outcome, sent = run.result()
                found.append(outcome)
                for to, blobs in sent.items():
                    inboxes.setdefault(to, []).extend(blobs)
            failed = frozenset((f.vertex, f.subtask) for f in found if isinstance(f, Failed))
            hit = in_regions_of(self._graph, failed)
        return self._result(found)

    def _run(self, vertex: Vertex, index: int, order: EpochOrder, blobs: list[bytes]) -> tuple[Any, Inboxes]:
        """One subtask's epoch: its acknowledgement or error, and what it sent."""
        assert self._deployment is not None
        slot = self._graph.slot_of(vertex, index)
        request = RunEpoch(vertex.id, index, self._deployment.attempt, order)
        sent: Inboxes = {}
        outcome: Any = None
        try:
            for item in run_subtask(self._link(slot, (vertex.id, index)), request, blobs):
                if isinstance(item, Outcome):
                    outcome = pickle.loads(item.data) if item.good else Failed(vertex.id, index, item.data)
                else:
                    exchange, target = destination_of(item)
                    sent.setdefault((self._targets[exchange], target), []).append(item)
        except (OSError, EOFError) as error:
            outcome = Failed(vertex.id, index, dumps(SlotLostError(slot, str(error) or type(error).__name__)))
        return outcome, sent

    def _link(self, slot: int, subtask: tuple[int, int]) -> Link:
        with self._lock:
            link = self._links.get(subtask)
        if link is None:
            link = connect(self._pool.slots[slot].address, self._pool.secret)
            with self._lock:
                if self._cancelled:  # nobody would hang up on this one
                    link.close()
                    raise OSError("the epoch was cancelled")
                self._links[subtask] = link
        return link

    def _hang_up(self, chosen: Callable[[int], bool]) -> None:
        with self._lock:
            for vertex, index in list(self._links):
                if chosen(self._graph.slot_of(self._graph.vertices[vertex], index)):
                    self._links.pop((vertex, index)).close()

    def cancel_epoch(self) -> None:
        """Make a running epoch fail."""
        with self._lock:
            self._cancelled = True
        self._hang_up(lambda slot: True)

    def _slot_lost(self, number: int) -> None:
        self._hang_up(lambda slot: slot == number)

    def shutdown(self) -> None:
        """End the slots."""
        self._hang_up(lambda slot: True)
        super().shutdown()
        self._threads.shutdown(wait=False)


def _slots(count: int, heartbeat: Heartbeat, *, registering: bool) -> Slots:
    if not registering:
        return SlotPool(count, PythonDependencies(), heartbeat=heartbeat)

    def start_here(launch: Launch, numbers: list[int]) -> None:
        for _ in launch(numbers):
            pass

    return RegisteringSlots(count, "127.0.0.1", start_here, heartbeat)


@contextmanager
def on_process_engine(*, registering: bool = False) -> Iterator[None]:
    """Run every `execute`, `execute_async` and `execute_and_collect` of this thread in slot processes, not on Spark."""

    def engine_for(settings: JobSettings) -> Callable[[JobGraph], ProcessEngine]:
        heartbeat = Heartbeat(settings.heartbeat_interval_ms / 1000, settings.heartbeat_timeout_ms / 1000)
        return lambda graph: ProcessEngine(graph, heartbeat, registering=registering)

    with jobs_submitted_by(partial(submit, engine_for=engine_for)):
        yield
