"""The bytes that subtasks read are those that others sent to them, on every engine."""

from functools import partial

import pytest

from ekorn.datastream import StreamExecutionEnvironment
from ekorn.graph.addresses import SubtaskId
from ekorn.testing import on_local_engine
from ekorn.testing.process_engine import on_process_engine
from tests.driver.submitted_jobs import noted_handles

ENGINES = {
    "epochs": on_local_engine,
    "continuous": partial(on_local_engine, continuous=True),
    "epochs in slot processes": on_process_engine,
    "continuous in slot processes": partial(on_process_engine, continuous=True),
}


def bytes_of_a_job():
    """Return the totals of both subtasks of each vertex, and their metrics."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.from_sequence(0, 9_999).key_by(lambda n: n % 7).map(lambda n: n).print()
    with noted_handles() as handles:
        env.execute("bytes")
    metrics = handles[0].view.statistics.metrics
    subtasks = [[SubtaskId(vertex, index) for index in range(2)] for vertex in range(2)]
    return (
        [[metrics.totals(each) for each in vertex] for vertex in subtasks],
        [metrics.of_subtask(each) for each in subtasks[1]],
    )


@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
def test_what_subtasks_read_is_what_others_sent(engine):
    with engine():
        (senders, receivers), shown = bytes_of_a_job()
    assert [each.bytes_in for each in senders] == [0, 0], "a source reads from no subtask"
    sent = sum(each.bytes_out for each in senders)
    assert sum(each.bytes_in for each in receivers) == sent > 10_000
    assert [each["numBytesIn"] for each in shown] == [each.bytes_in for each in receivers]
