"""Checkpoints that begin while another epoch is on its way: none completes before the output of its epoch is known."""

from __future__ import annotations

from random import Random

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Configuration, JobStatus, RestartStrategies, WatermarkStrategy
from ekorn.datastream import DataStream, StreamExecutionEnvironment
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.loop.job_loop import JobLoop
from ekorn.engine.protocol import EpochResult, Failure
from ekorn.errors import SlotLostError
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.testing.continuous_local_engine import ContinuousLocalEngine
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.scripted import ScriptedSource

INTERVAL_MS = 10
RECORDS = list(range(20))


class Ahead(ContinuousLocalEngine):
    """Runs an epoch that is ordered ahead at once, with the epoch before it; one of these answers is lost."""

    def __init__(self, graph: JobGraph, clock: ManualClock) -> None:
        super().__init__(graph, clock)
        self.ahead: list[MarkOrder] = []
        self.most_at_once = 0
        self._clock = clock
        self._done: dict[int, EpochResult[MarkAck]] = {}
        self._loses = True

    def run_epoch(self, order: MarkOrder) -> EpochResult[MarkAck]:
        self._clock.advance(1)
        if order.number in self._done:
            result = self._done.pop(order.number)
            if self._loses:
                self._loses = False
                self._done.clear()
                return EpochResult(failure=Failure(SlotLostError(0, "its answer is lost")))
            return result
        result = super().run_epoch(order)
        self._run_ahead()
        return result

    def _run_ahead(self) -> None:
        assert self.next_order is not None, "the driver offers orders where several checkpoints may be in flight"
        for _ in range(4):
            self._clock.advance(INTERVAL_MS)
            ahead = self.next_order()
            if ahead is not None:
                self.ahead.append(ahead)
                self._done[ahead.number] = super().run_epoch(ahead)
        self.most_at_once = max(self.most_at_once, len(self._done) + 1)

    def wait(self, timeout_s: float) -> None:
        super().wait(0.0)
        self._clock.advance(1)


def numbers(concurrent: int) -> DataStream:
    configuration = Configuration()
    configuration.set_string("state.backend.async", "false")  # a snapshot is reported with its epoch
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.enable_checkpointing(INTERVAL_MS).get_checkpoint_config().set_max_concurrent_checkpoints(concurrent)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    return env.from_source(ScriptedSource([RECORDS], [1]), WatermarkStrategy.no_watermarks(), "numbers")


@pytest.mark.parametrize("concurrent", [2, 3])
def test_a_checkpoint_whose_epoch_was_not_answered_commits_nothing(concurrent: int) -> None:
    graph, settings = drawn_job(numbers(concurrent).map(lambda n: n))
    clock, handle, made = ManualClock(1_000_000), JobHandle(settings.job_id, settings.job_name), []

    def make_engine(graph: JobGraph) -> Ahead:
        made.append(Ahead(graph, clock))
        return made[0]

    JobLoop(graph, settings, handle, make_engine, clock=clock, chance=Random(0)).run()
    assert handle.status() is JobStatus.FINISHED
    assert handle.progress().restarts == 1
    assert list(handle.results.records()) == RECORDS
    assert made[0].ahead and all(order.checkpoint_id is not None for order in made[0].ahead)
    assert made[0].most_at_once == concurrent
