"""A failure restarts the region that it happens in, and nothing else."""

import logging
from collections import Counter

import pytest

from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.connectors.data_frames.offset_batches_source import OffsetBatchesSource
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, MapFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import JobExecutionError
from ekorn.functions.sink_contract import SinkFunction
from ekorn.graph.regions import in_regions_of, regions
from ekorn.table.types import DataTypes
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted

SEEN: Counter = Counter()  # the records that sinks without transactions were given, over all attempts
FAILED: set = set()


@pytest.fixture(autouse=True)
def a_new_world(caplog):
    caplog.set_level(logging.CRITICAL, logger="ekorn")
    SEEN.clear()
    FAILED.clear()


class Note(SinkFunction):
    def __init__(self, name):
        self.name = name

    def invoke(self, value, context):
        SEEN[self.name, value] += 1


class FailOnce(MapFunction):
    def __init__(self, at):
        self.at = at

    def map(self, value):
        if value == self.at and value not in FAILED:
            FAILED.add(value)
            raise RuntimeError(f"failed at {value}")
        return value


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def environment(failover="region", parallelism=1):
    configuration = Configuration()
    configuration.set_string("jobmanager.execution.failover-strategy", failover)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    return env


def numbers(env, records, name):
    source = ScriptedSource([records], [2])
    return env.from_source(source, WatermarkStrategy.no_watermarks(), name).uid(name)


def two_pipelines(env):
    numbers(env, list(range(10)), "left").map(FailOnce(5)).add_sink(Note("left"))
    counted = numbers(env, list(range(100, 110)), "right").key_by(lambda n: n % 2).process(Count())
    counted.add_sink(Note("right"))
    return counted


NO_CHECKPOINT_FOR_LONG = Script(checkpoints=[False] * 50 + [True])


def test_another_pipeline_does_not_go_back():
    env = environment()
    two_pipelines(env)
    run = run_scripted(env, NO_CHECKPOINT_FOR_LONG)
    assert run.handle.progress().restarts == 1
    # 0 to 3 came before the failure and again after it; the other pipeline wrote its records once
    assert {n: SEEN["left", n] for n in range(10)} == {n: 2 if n < 5 else 1 for n in range(10)}
    expected = {(n, (n - 100) // 2 + 1): 1 for n in range(100, 110)}
    assert {value: times for (name, value), times in SEEN.items() if name == "right"} == expected


def test_with_full_failover_everything_goes_back():
    env = environment("full")
    two_pipelines(env)
    run_scripted(env, NO_CHECKPOINT_FOR_LONG)
    assert SEEN["left", 0] == 2
    assert SEEN["right", (100, 1)] == 2


def test_what_was_collected_of_another_pipeline_stays():
    env = environment()
    run = run_scripted(two_pipelines(env), NO_CHECKPOINT_FOR_LONG)
    assert run.records == [(n, (n - 100) // 2 + 1) for n in range(100, 110)]


def test_what_was_collected_of_the_failed_pipeline_is_collected_anew():
    env = environment()
    two_pipelines(env)
    run = run_scripted(numbers(env, list(range(8)), "third").map(FailOnce(3)), Script(checkpoints=[False] * 9 + [True]))
    assert sorted(run.records) == list(range(8))


def test_the_slices_of_a_job_without_exchanges_fail_one_by_one():
    env = environment(parallelism=2)
    source = ScriptedSource([[0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]], [1])
    env.from_source(source, WatermarkStrategy.no_watermarks(), "both").map(FailOnce(13)).add_sink(Note("slice"))
    run_scripted(env, NO_CHECKPOINT_FOR_LONG)
    assert [SEEN["slice", n] for n in range(6)] == [1] * 6
    assert [SEEN["slice", n] for n in range(10, 16)] == [2, 2, 2, 1, 1, 1]


def test_a_region_goes_back_to_the_last_checkpoint_and_the_rest_goes_on_from_where_it_is():
    env = environment()
    failing = numbers(env, list(range(20)), "left").key_by(lambda n: 0).process(Count())
    failing.map(FailOnce((11, 12))).add_sink(Note("left"))
    going_on = numbers(env, list(range(20)), "right").key_by(lambda n: 0).process(Count())
    going_on.add_sink(Note("right"))
    run_scripted(env, Script(checkpoints=[False, False, True]))
    assert {value for name, value in SEEN if name == "left"} == {(n, n + 1) for n in range(20)}
    assert sum(times for (name, _), times in SEEN.items() if name == "left") > 20
    assert {value: times for (name, value), times in SEEN.items() if name == "right"} == {
        (n, n + 1): 1 for n in range(20)
    }


@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("point", ["in-epoch", "after-epoch", "before-notify", "in-notify", "after-deploy"])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_whatever_fails_results_are_right(kill, point, count):
    env = environment(parallelism=2)
    two_pipelines(env)
    counted = numbers(env, list(range(30)), "third").key_by(lambda n: n % 3).process(Count())
    run = run_scripted(counted, Script(checkpoints=[False, True], crashes=[Crash(point, count)], kill=kill))
    assert Counter(run.records) == Counter((n, n // 3 + 1) for n in range(30))


def test_the_restart_strategy_counts_a_failure_once():
    env = environment()
    env.set_restart_strategy(RestartStrategies.no_restart())
    two_pipelines(env)
    with pytest.raises(JobExecutionError, match="failed at 5"):
        run_scripted(env, NO_CHECKPOINT_FOR_LONG)


# ------------------------------------------------------------------------------------------------- which regions


def graph_of(env):
    return env.job_graph()


def test_an_exchange_to_all_makes_one_region():
    env = environment(parallelism=3)
    env.from_sequence(1, 9).key_by(lambda n: n).process(Count()).add_sink(Note("all"))
    assert set(regions(graph_of(env)).values()) == {0}


def test_pipelines_apart_are_regions_of_their_own():
    env = environment()
    two_pipelines(env)
    graph = graph_of(env)
    found = regions(graph)
    assert len(set(found.values())) == 2
    assert in_regions_of(graph, frozenset()) == frozenset()
    left = next(subtask for subtask in found if "left" in graph.vertices[subtask[0]].name)
    assert {graph.vertices[v].name for v, _ in in_regions_of(graph, frozenset({left}))} == {
        v.name for v in graph.vertices if "left" in v.name
    }


def test_a_job_without_exchanges_has_a_region_for_each_subtask():
    env = environment(parallelism=4)
    env.from_sequence(1, 9).map(lambda n: n).add_sink(Note("x"))
    assert sorted(regions(graph_of(env)).values()) == [0, 1, 2, 3]


def test_rescaling_connects_a_few_subtasks():
    env = environment(parallelism=4)
    env.from_sequence(1, 9).rescale().map(lambda n: n).set_parallelism(2).add_sink(Note("x")).set_parallelism(2)
    assert len(set(regions(graph_of(env)).values())) == 2


def test_the_subtasks_of_a_source_that_reads_in_steps_restart_together():
    env = environment(parallelism=3)
    columns = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT())])
    source = OffsetBatchesSource("/batches", "/home", columns, lanes=3, bounded=False)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "steps").map(FailOnce(1)).add_sink(Note("a"))
    assert set(regions(env.job_graph("steps")).values()) == {0}, "one checkpoint has the same offset in all subtasks"
