"""Harnesses of functions and pipelines with one input: elements and time in; output, state and timers out."""

import asyncio

import pytest

from ekorn.common import Configuration, Row, Time, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import AsyncDataStream, AsyncFunction, OutputTag
from ekorn.datastream.functions import (
    AggregateFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
)
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from ekorn.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows, TumblingProcessingTimeWindows
from ekorn.functions.timer_service import TimeDomain
from ekorn.testing import KeyedOneInputHarness, OneInputHarness, RegisteredTimer

MAX = 2**63 - 1


class Double(MapFunction):
    def map(self, value):
        return value * 2


class Letters(FlatMapFunction):
    def flat_map(self, value):
        yield from value


class Odd(FilterFunction):
    def filter(self, value):
        return value % 2 == 1


class Larger(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


@pytest.mark.parametrize(
    ("function", "pushed", "expected"),
    [(Double(), [1, 2], [2, 4]), (Letters(), ["ab", "", "c"], ["a", "b", "c"]), (Odd(), [1, 2, 3], [1, 3])],
    ids=["map", "flat map", "filter"],
)
def test_a_function_is_run_by_its_kind(function, pushed, expected):
    with OneInputHarness(function) as harness:
        harness.process_elements(*pushed)
        assert harness.output() == expected


def test_a_reduce_function_runs_on_a_keyed_stream():
    with KeyedOneInputHarness(Larger(), lambda value: value[0]) as harness:
        harness.process_elements(("a", 1), ("b", 5), ("a", 3), ("a", 2))
        assert harness.output() == [("a", 1), ("b", 5), ("a", 3), ("a", 3)]


def test_a_call_returns_after_the_whole_pipeline_has_run():
    with OneInputHarness(lambda s: s.map(lambda v: v + 1).rebalance().map(lambda v: v * 10)) as harness:
        harness.process_element(1)
        assert harness.output() == [20]
        harness.process_element(2)
        assert harness.output() == [20, 30]


def test_output_has_timestamps_and_can_be_taken():
    with OneInputHarness(Double()) as harness:
        harness.process_element(1, timestamp=7)
        harness.process_element(2)
        assert harness.output_with_timestamps() == [(2, 7), (4, None)]
        assert harness.take_output() == [2, 4]
        assert harness.output() == []


def test_what_comes_out_is_the_test_s_own():
    class Keeps(MapFunction):
        def open(self, runtime_context):
            self.kept = []

        def map(self, value):
            self.kept.append(value)
            return self.kept

    with OneInputHarness(Keeps()) as harness:
        harness.process_elements(1, 2)
        assert harness.output() == [[1], [1, 2]]


class Watched(ProcessFunction):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        yield value, ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()


def test_a_process_function_sees_the_test_s_time():
    with OneInputHarness(Watched(), processing_time=500) as harness:
        harness.process_element("a", 1)
        harness.process_watermark(10)
        harness.set_processing_time(600)
        harness.process_element("b", 11)
        assert harness.processing_time() == 600
        assert harness.output() == [("a", 1, -(2**63), 500), ("b", 11, 10, 600)]


def test_a_watermark_does_not_go_back():
    with OneInputHarness(Watched()) as harness:
        harness.process_watermark(10)
        harness.process_watermark(5)
        harness.process_element("a")
        assert harness.output()[0][2] == 10


def test_a_watermark_is_a_timestamp():
    with OneInputHarness(Watched()) as harness, pytest.raises(ValueError, match="at most"):
        harness.process_watermark(MAX + 1)


def test_processing_time_does_not_go_back():
    with OneInputHarness(Watched(), processing_time=9) as harness, pytest.raises(ValueError, match="cannot go back"):
        harness.set_processing_time(8)


TOTAL = ValueStateDescriptor("total", Types.LONG())
LARGE = OutputTag("large", Types.STRING())


class Account(KeyedProcessFunction):
    """Adds numbers up; a record with text registers timers."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(TOTAL)
        self.factor = int(runtime_context.get_job_parameter("factor", "1"))

    def process_element(self, value, ctx):
        key, what = value
        timers = ctx.timer_service()
        if what == "event":
            timers.register_event_time_timer(ctx.timestamp() + 10)
        elif what == "processing":
            timers.register_processing_time_timer(timers.current_processing_time() + 10)
        elif what == "forget":
            timers.delete_event_time_timer(ctx.timestamp() + 10)
        else:
            total = (self.total.value() or 0) + what * self.factor
            self.total.update(total)
            if total > 100:
                yield LARGE, f"{key} has {total}"

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, ctx.time_domain(), self.total.value()


@pytest.fixture
def account():
    with KeyedOneInputHarness(Account(), lambda value: value[0], side_outputs=[LARGE]) as harness:
        yield harness


def test_state_is_read_by_key(account):
    account.process_elements(("a", 1), ("b", 5), ("a", 2))
    assert account.state("a", TOTAL) == 3
    assert account.state("b", TOTAL) == 5
    assert account.state("c", TOTAL) is None


def test_side_outputs_are_kept(account):
    account.process_element(("a", 60), 1)
    account.process_element(("a", 70), 2)
    assert account.output() == []
    assert account.side_output(LARGE) == ["a has 130"]
    assert account.side_output_with_timestamps(OutputTag("large")) == [("a has 130", 2)]


def test_a_side_output_that_the_harness_does_not_collect_is_refused(account):
    with pytest.raises(LookupError, match=r"'other' is not collected.*side_outputs=.*'large'"):
        account.side_output(OutputTag("other"))


def test_timers_can_be_looked_at_and_fire_with_the_watermark(account):
    account.process_element(("a", 7))
    account.process_element(("a", "event"), 100)
    account.process_element(("a", "event"), 90)
    account.process_element(("b", "event"), 95)
    expected = [RegisteredTimer(100, TimeDomain.EVENT_TIME), RegisteredTimer(110, TimeDomain.EVENT_TIME)]
    assert account.timers("a") == expected
    account.process_watermark(105)
    assert account.output() == [("a", 100, TimeDomain.EVENT_TIME, 7), ("b", 105, TimeDomain.EVENT_TIME, None)]
    assert account.timers("a") == expected[1:]
    assert account.timers("b") == []


def test_a_deleted_timer_is_gone(account):
    account.process_element(("a", "event"), 100)
    account.process_element(("a", "forget"), 100)
    assert account.timers("a") == []
    account.process_watermark(MAX)
    assert account.output() == []


def test_processing_time_timers_fire_when_the_clock_has_passed_them(account):
    account.process_element(("a", "processing"))
    assert account.timers("a") == [RegisteredTimer(10, TimeDomain.PROCESSING_TIME)]
    account.set_processing_time(10)
    assert account.output() == []
    account.advance_processing_time(1)
    assert account.output() == [("a", 10, TimeDomain.PROCESSING_TIME, None)]


def test_the_end_of_the_input_is_the_end_of_event_time(account):
    account.process_element(("a", "event"), 100)
    account.process_element(("a", "processing"))
    account.end_input()
    assert [record[:2] for record in account.output()] == [("a", 110)]
    with pytest.raises(RuntimeError, match="the input has ended"):
        account.process_element(("a", 1))


def test_job_parameters_come_from_the_configuration():
    configuration = Configuration()
    configuration.set_string("pipeline.global-job-parameters", "factor:10")
    with KeyedOneInputHarness(Account(), lambda value: value[0], configuration=configuration) as harness:
        harness.process_element(("a", 3))
        assert harness.state("a", TOTAL) == 30


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


STATES = {
    "value": ValueStateDescriptor("value", Types.LONG()),
    "list": ListStateDescriptor("list", Types.LONG()),
    "map": MapStateDescriptor("map", Types.STRING(), Types.LONG()),
    "reducing": ReducingStateDescriptor("reducing", lambda a, b: a + b, Types.LONG()),
    "aggregating": AggregatingStateDescriptor("aggregating", Average(), Types.PICKLED_BYTE_ARRAY()),
}


class AllKinds(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(STATES["value"])
        self.list = runtime_context.get_list_state(STATES["list"])
        self.map = runtime_context.get_map_state(STATES["map"])
        self.reducing = runtime_context.get_reducing_state(STATES["reducing"])
        self.aggregating = runtime_context.get_aggregating_state(STATES["aggregating"])

    def process_element(self, value, ctx):
        self.value.update(value[1])
        self.list.add(value[1])
        self.map.put(str(value[1]), value[1])
        self.reducing.add(value[1])
        self.aggregating.add(value[1])


@pytest.mark.parametrize(
    ("kind", "full", "empty"),
    [
        ("value", 4, None),
        ("list", [2, 4], []),
        ("map", {"2": 2, "4": 4}, {}),
        ("reducing", 6, None),
        ("aggregating", 3.0, None),
    ],
)
def test_every_kind_of_state_is_read_as_a_plain_value(kind, full, empty):
    with KeyedOneInputHarness(AllKinds(), lambda value: value[0]) as harness:
        harness.process_elements(("a", 2), ("a", 4))
        assert harness.state("a", STATES[kind]) == full
        assert harness.state("b", STATES[kind]) == empty


def test_a_key_is_given_as_the_selector_gives_it_and_taken_as_declared():
    with KeyedOneInputHarness(Account(), lambda value: value[0], key_type=Types.DOUBLE()) as harness:
        harness.process_element((1, 7))
        assert harness.state(1, TOTAL) == 7
        assert harness.state(1.0, TOTAL) == 7


def test_keys_of_any_kind():
    with KeyedOneInputHarness(Account(), lambda value: value[0]) as harness:
        for key in [("a", 1), Row("a", 1), 1, 1.0, True, frozenset([1])]:
            harness.process_element((key, 7))
            assert harness.state(key, TOTAL) == 7


def test_state_that_does_not_exist_says_what_there_is(account):
    with pytest.raises(LookupError, match="no operator has a keyed state 'unknown'; there are 'total'"):
        account.state("a", ValueStateDescriptor("unknown", Types.INT()))


def test_state_of_several_operators_needs_a_name():
    def pipeline(stream):
        first = stream.key_by(lambda v: v[0]).process(Echo()).name("first")
        return first.key_by(lambda v: v[0]).process(Echo()).uid("second-uid")

    class Echo(Account):
        def process_element(self, value, ctx):
            yield from super().process_element(value, ctx)
            yield value[0], value[1] * 10

    with OneInputHarness(pipeline) as harness:
        harness.process_element(("a", 1))
        with pytest.raises(LookupError, match=r"several operators have a keyed state 'total'.*'first'"):
            harness.state("a", TOTAL)
        assert harness.state("a", TOTAL, operator="first") == 1
        assert harness.state("a", TOTAL, operator="second-uid") == 10
        with pytest.raises(LookupError, match="no operator 'third'"):
            harness.state("a", TOTAL, operator="third")


def test_state_expires_by_the_test_s_clock():
    descriptor = ValueStateDescriptor("brief", Types.INT())
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(100)).build())

    class Brief(KeyedProcessFunction):
        def open(self, runtime_context):
            self.brief = runtime_context.get_state(descriptor)

        def process_element(self, value, ctx):
            yield self.brief.value()
            self.brief.update(value)

    with KeyedOneInputHarness(Brief(), lambda value: "key") as harness:
        harness.process_element(1)
        harness.advance_processing_time(99)
        harness.process_element(2)
        harness.advance_processing_time(99)
        assert harness.state("key", descriptor) == 2
        harness.advance_processing_time(1)
        assert harness.state("key", descriptor) is None
        harness.process_element(3)
        assert harness.output() == [None, 1, None]


def test_windows_fire_with_watermarks_and_late_records_go_to_the_side():
    late = OutputTag("late")

    def pipeline(stream):
        windows = stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        return windows.side_output_late_data(late).reduce(lambda a, b: (a[0], a[1] + b[1]))

    with OneInputHarness(pipeline, side_outputs=[late]) as harness:
        harness.process_element(("a", 1), 3)
        harness.process_element(("a", 2), 9)
        harness.process_element(("a", 4), 10)
        harness.process_watermark(8)
        assert harness.output() == []
        harness.process_watermark(9)
        assert harness.output_with_timestamps() == [(("a", 3), 9)]
        harness.process_element(("a", 8), 5)
        assert harness.side_output_with_timestamps(late) == [(("a", 8), 5)]


def test_sessions_merge():
    def pipeline(stream):
        sessions = stream.key_by(lambda v: v[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        return sessions.reduce(lambda a, b: (a[0], a[1] + b[1]))

    with OneInputHarness(pipeline) as harness:
        for timestamp in (1, 9, 5):
            harness.process_element(("a", timestamp), timestamp)
        harness.process_watermark(13)
        assert harness.output_with_timestamps() == [(("a", 15), 13)]


def test_processing_time_windows_follow_the_test_s_clock():
    def pipeline(stream):
        windows = stream.key_by(lambda v: "key").window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
        return windows.reduce(lambda a, b: a + b)

    with OneInputHarness(pipeline, processing_time=10_000) as harness:
        harness.process_elements(1, 2)
        harness.set_processing_time(10_999)
        assert harness.output() == []
        harness.set_processing_time(11_000)
        assert harness.output() == [3]


def test_a_pipeline_may_make_its_own_timestamps_and_watermarks():
    class Second(TimestampAssigner):
        def extract_timestamp(self, value, record_timestamp):
            return value[1]

    def pipeline(stream):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
        return stream.assign_timestamps_and_watermarks(strategy).process(Watched())

    with OneInputHarness(pipeline) as harness:
        harness.process_elements(("a", 5), ("b", 8))
        assert [record[1:3] for record in harness.output()] == [(5, -(2**63)), (8, 4)]


def test_an_idle_input_does_not_hold_event_time_back():
    def pipeline(stream):
        return stream.union(stream.map(lambda v: v)).process(Watched())

    with OneInputHarness(pipeline) as harness:
        harness.mark_idle()
        harness.mark_idle(False)
        harness.process_watermark(7)
        harness.process_element("a")
        assert [record[2] for record in harness.output()] == [7, 7]


TAKEN = []


class Take(SinkFunction):
    def invoke(self, value, context):
        TAKEN.append((value, context.timestamp()))


def into_a_sink(stream):
    stream.add_sink(Take())


def test_a_pipeline_may_end_in_sinks_of_its_own():
    TAKEN.clear()
    with OneInputHarness(into_a_sink) as harness:
        harness.process_element("a", 3)
        assert TAKEN == [("a", 3)]
        assert harness.output() == []
    with pytest.raises(ValueError, match="no side outputs"):
        OneInputHarness(into_a_sink, side_outputs=[LARGE])


@pytest.mark.parametrize("function", [lambda number: number + 1, lambda pair: pair[0], lambda line: line.upper(), str])
def test_a_plain_function_in_place_of_a_pipeline_is_told_what_to_pass(function):
    with pytest.raises((TypeError, AttributeError)) as raised:
        OneInputHarness(function)
    said = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert "pass a pipeline that uses it, such as `lambda stream: stream.map(function)`" in said


@pytest.mark.parametrize(
    ("descriptor", "says"),
    [
        (
            MapStateDescriptor("m", Types.STRING(), Types.LONG()),
            r"get_state\(\) takes a ValueStateDescriptor, .*use get_map_state\(\)",
        ),
        ("visits", r"get_state\(\) takes a ValueStateDescriptor, got 'visits'"),
    ],
)
def test_state_that_is_asked_for_by_the_wrong_descriptor_is_refused_by_name(descriptor, says):
    class Asks(KeyedProcessFunction):
        def open(self, runtime_context):
            runtime_context.get_state(descriptor)

        def process_element(self, value, ctx):
            yield value

    with pytest.raises(TypeError, match=says):
        KeyedOneInputHarness(Asks(), lambda value: value)


def test_asynchronous_answers_are_waited_for():
    class Ask(AsyncFunction):
        async def async_invoke(self, value):
            await asyncio.sleep(0.02)
            return [value, -value]

    with OneInputHarness(lambda s: AsyncDataStream.unordered_wait(s, Ask(), Time.seconds(5))) as harness:
        harness.process_elements(1, 2)
        harness.run_until(lambda: len(harness.output()) == 4)
        assert sorted(harness.output()) == [-2, -1, 1, 2]
        with pytest.raises(TimeoutError, match="did not become true"):
            harness.run_until(lambda: False, timeout_s=0.01)


def test_declared_types_are_enforced_as_in_a_job():
    with OneInputHarness(Double(), output_type=Types.INT()) as harness, pytest.raises(TypeError, match="declared type"):
        harness.process_element("text")
    with OneInputHarness(Double(), type_info=Types.SHORT()) as harness:
        harness.process_element(4)
        assert harness.output() == [8]


class Fails(MapFunction):
    def map(self, value):
        raise KeyError(value)


def test_what_a_function_raises_is_raised_by_the_call_with_a_note():
    harness = OneInputHarness(Fails())
    with pytest.raises(KeyError) as raised:
        harness.process_element("odd one")
    assert any("'odd one'" in note and "Map" in note for note in raised.value.__notes__)
    with pytest.raises(RuntimeError, match="has failed"):
        harness.process_element("another")
    harness.close()


def test_a_function_that_cannot_be_opened():
    class Closed(MapFunction):
        def open(self, runtime_context):
            raise OSError("no connection")

        def map(self, value):
            return value

    with pytest.raises(OSError, match="no connection"):
        OneInputHarness(Closed())


EVENTS = []


class Lifecycle(MapFunction):
    def open(self, runtime_context):
        EVENTS.append("open")

    def map(self, value):
        return value

    def close(self):
        EVENTS.append("close")


def test_functions_are_opened_and_closed_once():
    EVENTS.clear()
    with OneInputHarness(Lifecycle()) as harness:
        assert EVENTS == ["open"]
        harness.close()
    assert EVENTS == ["open", "close"]
    with pytest.raises(RuntimeError, match="closed"):
        harness.process_element(1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: OneInputHarness(CoMapFunction), "CoMapFunction|unexpected|argument"),  # type: ignore[arg-type]
        (lambda: OneInputHarness(7), "takes a function or a callable"),  # type: ignore[arg-type]
        (lambda: OneInputHarness(Larger()), "Larger is not a function of one input"),
        (lambda: OneInputHarness(Odd(), output_type=Types.INT()), "leave out output_type"),
        (lambda: OneInputHarness(lambda s: s, output_type=Types.INT()), "output_type= is for a function"),
        (lambda: KeyedOneInputHarness(lambda s: s, lambda v: v), "a keyed harness takes a function"),  # type: ignore[arg-type]
    ],
)
def test_what_a_harness_cannot_run_is_refused(make, says):
    with pytest.raises(TypeError, match=says):
        make()
