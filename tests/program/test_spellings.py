"""Spellings of Flink's documents, old ones among them: each works as it does in Java."""

from __future__ import annotations

import pytest

from ekorn.common import Configuration, Time, Types, WatermarkStrategy
from ekorn.datastream import (
    AscendingTimestampExtractor,
    BroadcastProcessFunction,
    CheckpointConfig,
    CoProcessFunction,
    ExternalizedCheckpointCleanup,
    ExternalizedCheckpointRetention,
    FilterFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    SinkFunction,
    StreamExecutionEnvironment,
    TimestampExtractor,
    checkpoint_config,
)
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.functions import AggregateFunction, ProcessAllWindowFunction, ProcessJoinFunction
from ekorn.datastream.state import MapStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.errors import ConfigurationError, InvalidProgramError, JobExecutionError
from ekorn.legacy.spellings import SourceSpelling
from ekorn.testing.local_run import collect_locally, on_local_engine

SIDE = OutputTag("side", Types.STRING())


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def timed(env, records):
    """Return a stream of pairs, whose second part is the timestamp."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
    return env.from_collection(records).assign_timestamps_and_watermarks(strategy)


# ------------------------------------------------------------------------------------------------------- parameters


class Above(FilterFunction):
    def open(self, config):
        self.limit = config.get_integer("limit", 0)
        self.known = (config.contains_key("limit"), config.key_set(), config.to_dict())

    def filter(self, value):
        assert self.known == (True, {"limit", "name"}, {"limit": "2", "name": "big"})
        return value > self.limit


def test_open_reads_the_parameters_of_its_operator_as_a_configuration(env):
    own = Configuration().set_integer("limit", 2).set_string("name", "big")
    assert collect_locally(env.from_collection([1, 2, 3]).filter(Above()).with_parameters(own)) == [3]


class Global(MapFunction):
    def open(self, parameters):
        self.found = self.get_runtime_context().get_execution_config().get_global_job_parameters()

    def map(self, value):
        found = self.found
        numbers = found.get_integer("n", 0), found.get_long("n", 0), found.get_double("n", 0.0), found.get_int("no", 7)
        return found.get_string("myKey", None), found.get_string("missing", "none"), numbers, found.get_boolean("yes")


def test_global_parameters_are_read_as_a_configuration_is(env):
    globally = Configuration().set_string("myKey", "myValue").set_integer("n", 4).set_boolean("yes", True)
    env.get_config().set_global_job_parameters(globally)
    assert collect_locally(env.from_collection([1]).map(Global())) == [("myValue", "none", (4, 4, 4.0, 7), True)]
    parameters = env.get_config().get_global_job_parameters()
    assert parameters == {"myKey": "myValue", "n": "4", "yes": "true"} == parameters.to_map()
    assert parameters.has("n") and not parameters.has("m") and parameters.key_set() == set(parameters)
    with pytest.raises(ConfigurationError, match="'m' is required"):
        parameters.get_required("m")
    with pytest.raises(ConfigurationError, match="'myValue' of 'myKey'"):
        parameters.get_integer("myKey")


# ----------------------------------------------------------------------------------------------------- side outputs


class Outputs(ProcessFunction):
    """Emits nothing by its results, and everything by its context."""

    def process_element(self, value, ctx):
        ctx.output(SIDE, f"side-{value}")
        ctx.output(OutputTag("unread"), "dropped")


class Mixes(ProcessFunction):
    def process_element(self, value, ctx):
        yield SIDE, f"{value}: first"
        ctx.output(SIDE, f"{value}: second")
        yield value
        yield SIDE, f"{value}: third"


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_function_without_results_emits_to_a_side_output(env, parallelism):
    result = env.from_collection(list(range(50))).process(Outputs()).set_parallelism(parallelism)
    result.print()
    assert sorted(collect_locally(result.get_side_output(SIDE))) == sorted(f"side-{n}" for n in range(50))


@pytest.mark.parametrize("chained", [True, False])
@pytest.mark.parametrize("with_time", [True, False])
def test_both_ways_to_a_side_output_keep_their_order(env, chained, with_time):
    records = [(f"r{n}", n) for n in range(30)]
    stream = timed(env, records) if with_time else env.from_collection(records)
    result = stream.map(lambda value: value[0]).process(Mixes())
    if not chained:
        env.disable_operator_chaining()
    side = result.get_side_output(SIDE).map(str.upper, Types.STRING())
    both = collect_locally(result.map(lambda value: value, Types.STRING()).union(side))
    expected = [f"R{n}: {nth}" for n in range(30) for nth in ("FIRST", "SECOND", "THIRD")]
    assert [each for each in both if ":" in each] == expected
    assert [each for each in both if ":" not in each] == [f"r{n}" for n in range(30)]


def test_the_main_output_of_a_function_with_a_union_of_its_side_output_has_every_record_once(env):
    result = env.from_collection([str(n) for n in range(9)]).process(Mixes(), Types.STRING())
    found = collect_locally(result.union(result.get_side_output(SIDE)))
    assert len(found) == 36 and sorted(each for each in found if ":" not in each) == [str(n) for n in range(9)]


class OutputsTimes(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.output(SIDE, f"{value[0]} at {ctx.timestamp()}")
        ctx.timer_service().register_event_time_timer(value[1] + 10)

    def on_timer(self, timestamp, ctx):
        ctx.output(SIDE, f"timer of {ctx.get_current_key()} at {timestamp}")


class ShowsTime(ProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value}, stamped {ctx.timestamp()}"


def test_records_of_a_side_output_have_the_timestamp_of_record_or_timer(env):
    result = timed(env, [("a", 5), ("b", 7)]).key_by(lambda value: value[0]).process(OutputsTimes())
    assert sorted(collect_locally(result.get_side_output(SIDE).process(ShowsTime()))) == [
        "a at 5, stamped 5",
        "b at 7, stamped 7",
        "timer of a at 15, stamped 15",
        "timer of b at 17, stamped 17",
    ]


class OutputsWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        context.output(SIDE, f"{key}: {len(list(elements))} until {context.window().end}")
        return []

    def clear(self, context):
        context.output(SIDE, f"cleared {context.window().end}")


class OutputsAllWindow(ProcessAllWindowFunction):
    def process(self, context, elements):
        context.output(SIDE, f"all: {len(list(elements))}")
        return []


def test_window_functions_emit_to_side_outputs_by_their_context(env):
    records = timed(env, [("a", 1), ("a", 2), ("a", 12)])
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    found = records.key_by(lambda value: value[0]).window(windows).process(OutputsWindow())
    expected = ["a: 1 until 20", "a: 2 until 10", "cleared 10", "cleared 20"]
    assert sorted(collect_locally(found.get_side_output(SIDE))) == expected
    found = records.window_all(windows).process(OutputsAllWindow())
    assert collect_locally(found.get_side_output(SIDE)) == ["all: 2", "all: 1"]


class OutputsPairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        ctx.output(SIDE, f"{left[0]}{right[1]} at {ctx.get_timestamp()}")


def test_joins_and_two_inputs_emit_to_side_outputs_by_their_context(env):
    left, right = (timed(env, records).key_by(lambda value: value[0]) for records in ([("a", 1)], [("a", 3)]))
    pairs = left.interval_join(right).between(Time.milliseconds(0), Time.milliseconds(5)).process(OutputsPairs())
    assert collect_locally(pairs.get_side_output(SIDE)) == ["a3 at 3"]

    class Both(CoProcessFunction):
        def process_element1(self, value, ctx):
            ctx.output(SIDE, f"first {value}")

        def process_element2(self, value, ctx):
            ctx.output(SIDE, f"second {value}")

    both = env.from_collection([1]).connect(env.from_collection([2])).process(Both())
    assert sorted(collect_locally(both.get_side_output(SIDE))) == ["first 1", "second 2"]


def test_what_is_no_tag_and_a_sink_without_side_outputs_are_refused(env):
    class NoTag(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.output("side", value)

    class Sink(SinkFunction):
        def invoke(self, value, context):
            context.output(SIDE, value)

    with pytest.raises(JobExecutionError, match=r"output\(\) takes an OutputTag and a record, got 'side'"):
        collect_locally(env.from_collection([1]).process(NoTag()).get_side_output(SIDE))
    env.from_collection([1]).add_sink(Sink())
    with pytest.raises(JobExecutionError, match="a sink has no side outputs"), on_local_engine():
        env.execute()


def test_an_error_behind_a_side_output_names_the_operator_that_failed(env):
    broken = env.from_collection([5]).process(Outputs()).name("outputs").get_side_output(SIDE)
    with pytest.raises(JobExecutionError, match=r"(?s)'broken'.*'side-5'"):
        collect_locally(broken.map(int).name("broken"))


def test_skipped_records_behind_a_side_output_are_those_of_the_operator_that_skips(env):
    numbers = env.from_collection([1, 2, 3]).process(Outputs()).get_side_output(SIDE)
    kept = numbers.map(lambda text: 6 // (int(text[-1]) - 2)).on_record_error("skip")
    assert collect_locally(kept) == [-6, 6]


# ------------------------------------------------------------------------------------------------------------ state

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class AppliesRules(KeyedBroadcastProcessFunction):
    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        ctx.output(SIDE, f"{sorted(ctx.get_broadcast_state(RULES).entries())}")

    def process_element(self, value, ctx):
        entries = ctx.get_broadcast_state(RULES).immutable_entries()
        for entry in sorted(entries):
            name, number = entry
            assert (name, number) == (entry.get_key(), entry.get_value()) == (entry.key, entry.value)
            ctx.output(SIDE, f"{value}: {name}={number}")


class WithoutKeys(BroadcastProcessFunction):
    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)

    def process_element(self, value, ctx):
        yield [entry.get_key() for entry in ctx.get_broadcast_state(RULES).immutable_entries()]


def test_entries_of_broadcast_state(env):
    rules = env.from_collection([("one", 1), ("two", 2)]).broadcast(RULES)
    data = env.from_collection(["x"])
    found = data.key_by(lambda value: value).connect(rules).process(AppliesRules())
    assert collect_locally(found.get_side_output(SIDE))[-2:] == ["x: one=1", "x: two=2"]
    assert collect_locally(data.connect(rules).process(WithoutKeys())) == [["one", "two"]]


class CountsWords(KeyedProcessFunction):
    def open(self, runtime_context):
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx):
        self.counts.put(value, (self.counts.get(value) or 0) + 1)
        entries = sorted((entry.get_key(), entry.get_value()) for entry in self.counts.entries())
        assert entries == sorted(self.counts.items()) == sorted(self.counts.iterator())
        yield entries


def test_entries_of_map_state(env):
    words = env.from_collection(["a", "b", "a"]).key_by(lambda word: 0)
    assert collect_locally(words.process(CountsWords()))[-1] == [("a", 2), ("b", 1)]


# ---------------------------------------------------------------------------------------------- windows by functions


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def test_plain_functions_evaluate_windows(env):
    records = timed(env, [("a", 1), ("a", 2), ("a", 12)])
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    keyed = records.key_by(lambda value: value[0]).window(windows)

    def yielding(key, context, elements):
        for element in elements:
            yield key, context.window().end, element[1]

    assert collect_locally(keyed.apply(lambda key, window, inputs: [(key, window.start, len(list(inputs)))])) == [
        ("a", 0, 2),
        ("a", 10, 1),
    ]
    assert collect_locally(keyed.process(yielding)) == [("a", 10, 1), ("a", 10, 2), ("a", 20, 12)]
    by_window = keyed.aggregate(Sum(), lambda key, window, sums: [(window.end, next(iter(sums)))])
    assert collect_locally(by_window) == [(10, 3), (20, 12)]
    by_context = keyed.reduce(max, lambda key, context, found: [(context.window().start, next(iter(found)))])
    assert collect_locally(by_context) == [(0, ("a", 2)), (10, ("a", 12))]
    folded = keyed.fold(0, lambda count, value: count + 1, lambda key, window, counts: [(key, *counts)])
    assert collect_locally(folded) == [("a", 2), ("a", 1)]
    every = records.window_all(windows)
    assert collect_locally(every.apply(lambda window, inputs: [window.end])) == [10, 20]
    assert collect_locally(every.process(lambda context, inputs: [context.window().end])) == [10, 20]
    assert collect_locally(every.reduce(max, lambda ctx, found: [ctx.window().end])) == [10, 20]


def test_plain_functions_with_wrong_arguments_are_refused(env):
    keyed = env.from_collection([1]).key_by(lambda value: value).count_window(2)
    with pytest.raises(TypeError, match=r"apply\(\) calls its function with 3 arguments"):
        keyed.apply(lambda window, inputs: [])
    with pytest.raises(TypeError, match=r"reduce\(\) calls its function with 3 arguments"):
        keyed.reduce(max, lambda inputs: [])
    with pytest.raises(TypeError, match="must be a WindowFunction or a ProcessWindowFunction, or a plain function"):
        keyed.reduce(max, OutputsAllWindow())


# ------------------------------------------------------------------------------------------------------- timestamps


class Extractor(TimestampExtractor):
    """Has a watermark after every record that ends in "!", and one now and then."""

    def __init__(self):
        self.highest = -1

    def extract_timestamp(self, value, record_timestamp):
        self.highest = max(self.highest, value[1])
        return value[1]

    def extract_watermark(self, element, current_timestamp):
        assert current_timestamp == element[1]
        return current_timestamp if element[0].endswith("!") else None

    def get_current_watermark(self):
        return self.highest - 100


class ShowsWatermark(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark()


def test_assign_timestamps_takes_an_extractor(env):
    records = env.from_collection([("a", 10), ("b!", 20), ("c", 30), ("d!", 15), ("e", 40)])
    shown = collect_locally(records.assign_timestamps(Extractor()).process(ShowsWatermark()))
    times = [(name, at) for name, at, _ in shown]
    assert times == [("a", 10), ("b!", 20), ("c", 30), ("d!", 15), ("e", 40)]
    assert [watermark for _, _, watermark in shown][2:] == [20, 20, 20]
    assert shown[0][2] < 20
    with pytest.raises(TypeError, match="an assigner with extract_timestamp and"):
        records.assign_timestamps(lambda value: value[1])


class Second(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element):
        return element[1]


def test_assign_timestamps_takes_what_its_successor_takes(env):
    records = env.from_collection([("a", 10), ("b", 20)])
    assert [at for _, at, _ in collect_locally(records.assign_timestamps(Second()).process(ShowsWatermark()))] == [
        10,
        20,
    ]


class Tens(SourceSpelling):
    watermark_strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value * 10
    )

    def as_source(self):
        return NumberSequenceSource(1, 2)


def test_an_old_source_brings_its_timestamps_along(env):
    assert collect_locally(env.add_source(Tens()).process(ShowsTime())) == ["1, stamped 10", "2, stamped 20"]


# --------------------------------------------------------------------------------------------------- names and keys


def test_the_old_name_of_the_retention_of_checkpoints():
    assert ExternalizedCheckpointCleanup is ExternalizedCheckpointRetention
    assert CheckpointConfig.ExternalizedCheckpointCleanup is ExternalizedCheckpointCleanup
    assert checkpoint_config.ExternalizedCheckpointCleanup is ExternalizedCheckpointCleanup  # PyFlink 1.x has it there
    config = StreamExecutionEnvironment.get_execution_environment().get_checkpoint_config()
    with pytest.warns(DeprecationWarning):
        config.enable_externalized_checkpoints(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    assert config.get_externalized_checkpoint_retention().name == "RETAIN_ON_CANCELLATION"


@pytest.mark.parametrize(
    ("key", "what"),
    [
        (lambda stream: stream.key_by(1), r"field 1 of .* cannot be a key, since it holds an array"),
        (lambda stream: stream.key_by(["name", "numbers"]), r"field 'numbers' of .* since it holds an array"),
        (lambda stream: stream.key_by("tags"), r"field 'tags' of .* since it holds a map"),
        (lambda stream: stream.key_by(lambda row: row, Types.MAP(Types.INT(), Types.INT())), "since it holds a map"),
        (lambda stream: stream.key_by(lambda row: row, Types.OBJECT_ARRAY(Types.INT())), "since it holds an array"),
    ],
)
def test_arrays_and_maps_are_refused_as_keys_where_the_program_says_so(env, key, what):
    types = [Types.STRING(), Types.PRIMITIVE_ARRAY(Types.INT()), Types.MAP(Types.STRING(), Types.INT())]
    stream = env.from_collection([("a", [1], {})], Types.ROW_NAMED(["name", "numbers", "tags"], types))
    with pytest.raises(InvalidProgramError, match=what):
        key(stream)
    assert stream.key_by("name") is not None
