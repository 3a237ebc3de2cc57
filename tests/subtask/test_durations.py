"""The durations that a subtask reports are measured by the clock that its slot gave it."""

from ekorn.clock import ManualClock
from ekorn.datastream import MapFunction
from tests.operators.windows.local_run import Run, environment, graph_of

CLOCKS: list[ManualClock] = []


class TakesTime(MapFunction):
    """Takes 250 ms of the job's own clock for each record."""

    def map(self, value):
        CLOCKS[0].advance(250)
        return value


def test_the_busy_time_of_an_epoch_follows_the_clock_of_the_job():
    run = Run(graph_of(environment().from_collection([1, 2, 3]).map(TakesTime())))
    CLOCKS[:] = [run.clock]
    run.deploy()
    run.step(max_records=2)
    assert [ack.busy_ms for ack in run.acks] == [500.0]
    run.step()
    assert [ack.busy_ms for ack in run.acks] == [250.0]
    run.close()
