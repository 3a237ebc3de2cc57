"""An engine with real slot processes that run jobs continuously, and no JVM: the driver carries the blobs.

It stands for Spark's tasks: one connection for each subtask, and a thread that passes on what leaves the subtask. A
thread waits while the target does not take a blob, as Spark's shuffle does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from ekorn.engine.protocol import Failure
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.engine.slots.slot_calls import SlotCalls, slot_of
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.errors import DeploymentError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import regions
from ekorn.links.link import Link, connect
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.task_messages import Attach, Carries
from ekorn.subtask.wire.frames import destination_of, is_blob
from ekorn.testing.slot_processes import ThisMachine, slot_processes
from ekorn.types.by_value import dumps

__all__ = ["ProcessFlows", "continuous_process_engine"]


def continuous_process_engine(
    graph: JobGraph, pool: SlotPool | None = None, stall_timeout_s: float = Heartbeat().stall_timeout_s
) -> ContinuousSlotEngine:
    """Make an engine that runs one job continuously in slot processes of this machine.

    Args:
        graph: The job.
        pool: The slots; by default children of this process.
        stall_timeout_s: When an epoch without progress is given up.
    """
    calls = SlotCalls(pool or slot_processes(graph.slot_count))
    return ContinuousSlotEngine(graph, calls, ThisMachine(), ProcessFlows(calls.pool), stall_timeout_s)


class ProcessFlows:
    """Carries blobs from slot to slot by threads of this process.

    Args:
        pool: The slots of the job.

    Attributes:
        on_failed: Called from any thread with an error, and with the subtasks that have failed by it.
    """

    def __init__(self, pool: SlotPool) -> None:
        self.on_failed: Callable[[Exception, frozenset[SubtaskId]], None] = lambda error, subtasks: None
        self._pool = pool
        self._carriers: dict[int, dict[SubtaskId, _Carrier]] = {}  # by region

    def lay_out(self, graph: JobGraph) -> None:
        self._graph = graph
        self._regions = regions(graph)
        self._targets = {e.id: e.target for e in graph.exchanges}

    def reserve(self, graph: JobGraph) -> None:
        """Do nothing: a thread needs no reservation."""

    def warm_up(self, graph: JobGraph) -> None:
        """Do nothing: a thread starts at once."""

    def fit(self, deployment: Deployment) -> Deployment:
        return deployment

    def await_resources(self, graph: JobGraph) -> Failure | None:
        return None

    def waits_for_resources(self, running: Collection[SubtaskId]) -> bool:
        return False

    def start(self, region: int, attempt: int) -> None:
        carriers: dict[SubtaskId, _Carrier] = {}
        self._carriers[region] = carriers
        in_region = sorted(of for of, number in self._regions.items() if number == region)
        for subtask in in_region:
            try:
                link = connect(self._pool.slots[slot_of(self._graph, subtask)].address, self._pool.secret)
                link.send(dumps(Attach(subtask, attempt, Carries.BOTH)))
            except (OSError, EOFError) as error:  # as a task of Spark that cannot reach its slot
                why = DeploymentError(f"the slot of {subtask} cannot be reached: {error}")
                self.on_failed(why, frozenset(in_region))
                return
            carriers[subtask] = _Carrier(link)
        for subtask, carrier in carriers.items():
            arguments = carrier, dict(carriers)
            threading.Thread(target=self._carry, args=arguments, name=f"carrier {subtask}", daemon=True).start()

    def _carry(self, mine: _Carrier, carriers: dict[SubtaskId, _Carrier]) -> None:
        try:
            while message := mine.link.receive():
                assert is_blob(message), "a slot that refuses a task has failed already"
                exchange, target = destination_of(message)
                carriers[SubtaskId(self._targets[exchange], target)].send(message)
        except (OSError, EOFError, AssertionError):
            for carrier in carriers.values():  # as Spark, which fails a job with all of its tasks
                carrier.link.shut_down()

    def end(self, ended: Collection[int], *, in_order: bool) -> None:
        for region in ended:
            for carrier in self._carriers.pop(region, {}).values():
                carrier.link.close()

    def cancel(self) -> None:
        self.on_failed(DeploymentError("the epoch was cancelled"), frozenset())

    def close(self) -> None:
        """Do nothing: the connections have been closed."""


class _Carrier:
    """The connection of one subtask. Several threads send to it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._lock = threading.Lock()

    def send(self, message: bytes) -> None:
        with self._lock:
            self.link.send(message)
