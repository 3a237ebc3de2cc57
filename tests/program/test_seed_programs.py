"""Programs of Flink's introductions in Python's spelling: they run as written."""

from __future__ import annotations

import pytest

from ekorn.common import Configuration, Duration, ParameterTool, Time, TimeUnit, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.config.state_backend import EmbeddedRocksDBStateBackend
from ekorn.datastream import (
    KeyedProcessFunction,
    MapFunction,
    Partitioner,
    RichFilterFunction,
    RichFlatMapFunction,
    RichMapFunction,
    RichParallelSourceFunction,
    RichReduceFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing.local_run import collect_locally


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


# --------------------------------------------------------------------------------------------------- rich functions


class CountWindowAverage(RichFlatMapFunction):
    """Emits the average of every two values of a key."""

    def open(self, parameters):
        descriptor = ValueStateDescriptor("average", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.sum = self.get_runtime_context().get_state(descriptor)

    def flat_map(self, value):
        count, total = self.sum.value() or (0, 0)
        count, total = count + 1, total + value[1]
        self.sum.update((count, total))
        if count >= 2:
            yield value[0], total // count
            self.sum.clear()


def test_the_average_of_every_two_values(env):
    values = env.from_collection([(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)])
    assert collect_locally(values.key_by(lambda value: value[0]).flat_map(CountWindowAverage())) == [(1, 4), (1, 5)]


class Longest(RichReduceFunction):
    def reduce(self, value1, value2):
        assert self.get_runtime_context().get_task_name()
        return max(value1, value2, key=len)


class OfThisJob(RichFilterFunction):
    def filter(self, value):
        return value != self.get_runtime_context().get_job_parameter("unwanted", "")


class Numbers(RichParallelSourceFunction):
    def run(self, ctx):
        for number in range(self.get_runtime_context().get_index_of_this_subtask() * 10, 13, 10):
            ctx.collect(number)

    def cancel(self):
        pass


def test_every_rich_function_has_the_context_of_its_subtask(env):
    env.set_parallelism(1).get_config().set_global_job_parameters({"unwanted": "a"})
    words = env.from_collection(["a", "bb", "ccc"]).filter(OfThisJob()).key_by(lambda word: 1)
    assert collect_locally(words.reduce(Longest())) == ["bb", "ccc"]
    assert sorted(collect_locally(env.set_parallelism(2).add_source(Numbers()))) == [0, 10, 10]


def test_before_open_there_is_no_context(env):
    class Early(RichMapFunction):
        def map(self, value):
            return value

    with pytest.raises(InvalidProgramError, match=r"Early has no runtime context yet: call get_runtime_context\(\) in"):
        Early().get_runtime_context()


# ------------------------------------------------------------------------------------------------------ parameters


class Parameter(MapFunction):
    def open(self, runtime_context):
        self.context = runtime_context

    def map(self, value):
        return self.context.get_job_parameter(value, "")


def test_global_job_parameters_from_a_configuration_a_dict_and_a_tool(env):
    configuration = Configuration()
    configuration.set_string("my.key", "from a configuration")
    for given, expected in (
        (configuration, "from a configuration"),
        ({"my.key": "from a dict"}, "from a dict"),
        (ParameterTool.from_map({"my.key": "from a tool"}), "from a tool"),
    ):
        env.get_config().set_global_job_parameters(given)
        assert collect_locally(env.from_collection(["my.key"]).map(Parameter())) == [expected]


# ---------------------------------------------------------------------------------------------------- partitioning


class ByKey(Partitioner):
    def partition(self, key, num_partitions):
        return key % num_partitions


class Where(MapFunction):
    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return value, self.index


@pytest.mark.parametrize("partitioner", [ByKey(), lambda key, count: key % count])
def test_a_partitioner_gets_the_field_that_is_named(env, partitioner):
    pairs = env.from_collection([(0, "a"), (1, "b"), (2, "c")])
    placed = collect_locally(pairs.partition_custom(partitioner, 0).map(Where()))
    assert sorted(placed) == [((0, "a"), 0), ((1, "b"), 1), ((2, "c"), 0)]
    dicts = env.from_collection([{"key": 3}, {"key": 4}])
    assert sorted(i for _, i in collect_locally(dicts.partition_custom(partitioner, "key").map(Where()))) == [0, 1]


# ---------------------------------------------------------------------------------------------- connected streams


def test_two_callables_map_two_connected_streams(env):
    numbers, words = env.from_collection([1, 2]), env.from_collection(["a"])
    both = numbers.connect(words)
    assert sorted(collect_locally(both.map(lambda n: f"{n}", lambda w: w.upper()))) == ["1", "2", "A"]
    assert sorted(collect_locally(both.map(str, str.upper, Types.STRING()))) == ["1", "2", "A"]
    assert sorted(collect_locally(both.flat_map(lambda n: [n] * n, lambda w: []))) == [1, 2, 2]


# ----------------------------------------------------------------------------------------------------------- time


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


@pytest.mark.parametrize(
    "lateness", [2000, Time.seconds(2), Duration.of_seconds(2), Time.of(2, TimeUnit.SECONDS), Time.of(2, "SECONDS")]
)
def test_lateness_is_a_length_of_time(env, lateness):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    events = env.from_collection([("a", 1), ("a", 999)]).assign_timestamps_and_watermarks(strategy)
    windows = events.key_by(lambda value: value[0]).window(TumblingEventTimeWindows.of(Time.of(1, TimeUnit.SECONDS)))
    assert collect_locally(windows.allowed_lateness(lateness).reduce(lambda a, b: (a[0], a[1] + b[1]))) == [("a", 1000)]


def test_a_negative_lateness_and_a_unit_that_is_none_are_refused(env):
    windows = env.from_collection([1]).key_by(lambda value: value).window(TumblingEventTimeWindows.of(Time.seconds(1)))
    with pytest.raises(ValueError, match="takes a duration of at least 0"):
        windows.allowed_lateness(Time.seconds(-1))
    with pytest.raises(TypeError, match="takes a number and a TimeUnit"):
        Time.of(1, "seconds")


# ----------------------------------------------------------------------------------------------------- list keys


class CountOfKey(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


@pytest.mark.parametrize("backend", ["heap", "rocksdb"])
def test_a_list_is_a_key_and_stays_a_list(env, backend):
    if backend == "rocksdb":
        env.set_state_backend(EmbeddedRocksDBStateBackend())
    keys = [[1, "a"], [1, "a"], (1, "a"), [[1], "a"], [[1], "a"], [1.0, "a"], ([2], 3), ([2], 3)]
    counts = collect_locally(env.from_collection(keys).key_by(lambda key: key).process(CountOfKey()))
    assert sorted(counts, key=repr) == sorted(
        [
            ([1, "a"], 1),
            ([1, "a"], 2),
            ((1, "a"), 1),
            ([[1], "a"], 1),
            ([[1], "a"], 2),
            ([1.0, "a"], 1),
            (([2], 3), 1),
            (([2], 3), 2),
        ],
        key=repr,
    )


@pytest.mark.parametrize("key", [{"a": 1}, {1}, [{"a": 1}]], ids=repr)
def test_what_has_no_stable_hash_is_still_refused(env, key):
    with pytest.raises(JobExecutionError, match="InvalidKeyError: cannot use"):
        collect_locally(env.from_collection([key]).key_by(lambda value: value).map(lambda value: value))
