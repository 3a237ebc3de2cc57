"""What the driver takes from the acknowledgements of an epoch."""

import pytest

from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.loop.continuous_mode import CROWDED_BYTES
from ekorn.driver.loop.epoch_tracker import least_by_group
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.engine.protocol import EpochResult
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import Ack
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.testing.continuous_local_engine import ContinuousLocalEngine
from ekorn.testing.scripted import ScriptedSource, run_scripted
from tests.driver.savepoint_programs import environment, numbers


def test_the_slowest_source_of_an_alignment_group_counts():
    acks = [
        Ack(0, 0, 7, group_watermarks={"slow": 5, "both": 9}),
        Ack(0, 1, 7, group_watermarks={"both": 3}),
        Ack(1, 0, 7),
        Ack(1, 1, 7, group_watermarks={"both": 4}),
    ]
    assert least_by_group(acks) == {"slow": 5, "both": 3}
    assert least_by_group([]) == {}


def test_an_epoch_takes_the_time_between_its_order_and_its_last_acknowledgement(tmp_path):
    run = run_scripted(numbers(environment(tmp_path)))
    progress = run.handle.progress()
    assert progress.epochs == 8
    assert progress.last_epoch_ms == pytest.approx(10), (
        "an epoch of a script takes ten milliseconds, however many came before it"
    )


class Crowded(ContinuousLocalEngine):
    """Has too many blobs waiting after the second epoch, and as many as may wait after all others."""

    def __init__(self, graph: JobGraph) -> None:
        super().__init__(graph)
        self.orders: list[MarkOrder] = []

    def run_epoch(self, order: MarkOrder) -> EpochResult[MarkAck]:
        self.orders.append(order)
        result = super().run_epoch(order)
        result.acks[0].kept_bytes = CROWDED_BYTES + (len(self.orders) == 2)
        return result


def test_sources_read_nothing_while_too_many_blobs_wait_in_a_subtask():
    made: list[Crowded] = []

    def make(graph: JobGraph) -> Crowded:
        made.append(Crowded(graph))
        return made[0]

    env = StreamExecutionEnvironment.get_execution_environment()
    source = ScriptedSource([[1, 2, 3, 4, 5]], [1])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(lambda n: n)
    with jobs_submitted_by(lambda graph, settings: submit(graph, settings, engine_for=lambda settings: make)):
        assert list(stream.execute_and_collect()) == [1, 2, 3, 4, 5]
    assert [order.pauses_sources for order in made[0].orders[:5]] == [False, False, True, False, False]
