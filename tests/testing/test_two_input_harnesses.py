"""Harnesses of functions with two inputs: connected streams, and broadcast state."""

import pytest

from ekorn.common import Types
from ekorn.datastream import OutputTag
from ekorn.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    MapFunction,
)
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor
from ekorn.testing import BroadcastHarness, KeyedTwoInputHarness, TwoInputHarness

START = -(2**63)


class Sides(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


class Repeats(CoFlatMapFunction):
    def flat_map1(self, value):
        return [value] * 2

    def flat_map2(self, value):
        return None


class Watermarks(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value, ctx):
        return ()


def test_a_co_map_takes_records_in_the_order_in_which_they_are_pushed():
    with TwoInputHarness(Sides()) as harness:
        harness.process_element2("b")
        harness.process_element1("a")
        harness.process_element2("c", timestamp=4)
        assert harness.output_with_timestamps() == [((2, "b"), None), ((1, "a"), None), ((2, "c"), 4)]


def test_a_co_flat_map():
    with TwoInputHarness(Repeats()) as harness:
        harness.process_element1("a")
        harness.process_element2("b")
        assert harness.output() == ["a", "a"]


def test_event_time_is_the_least_of_both_inputs():
    with TwoInputHarness(Watermarks()) as harness:
        harness.process_watermark1(10)
        harness.process_element1("a", 1)
        harness.process_watermark2(7)
        harness.process_element1("b", 2)
        harness.process_watermark(20)
        harness.process_element1("c", 3)
        assert harness.output() == [("a", 1, START), ("b", 2, 7), ("c", 3, 20)]


def test_an_idle_input_holds_nothing_back():
    with TwoInputHarness(Watermarks()) as harness:
        harness.process_watermark1(10)
        harness.mark_idle2()
        harness.process_element1("a")
        harness.mark_idle2(False)
        harness.mark_idle1()
        harness.process_watermark2(15)
        harness.process_element1("b")
        assert [record[2] for record in harness.output()] == [10, 15]


def test_a_pipeline_of_two_inputs():
    with TwoInputHarness(lambda a, b: a.map(lambda v: v * 2).union(b)) as harness:
        harness.process_element1(1)
        harness.process_element2(1)
        assert harness.output() == [2, 1]


LIMIT = ValueStateDescriptor("limit", Types.INT())
REFUSED = OutputTag("refused")


class Limited(KeyedCoProcessFunction):
    """Sends records above a limit to a side output. The second input sets limits, which expire after 100 ms."""

    def open(self, runtime_context):
        self.limit = runtime_context.get_state(LIMIT)

    def process_element1(self, value, ctx):
        limit = self.limit.value()
        if limit is not None and value[1] > limit:
            yield REFUSED, value
        else:
            yield value

    def process_element2(self, value, ctx):
        self.limit.update(value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 100)

    def on_timer(self, timestamp, ctx):
        self.limit.clear()
        yield ctx.get_current_key(), timestamp


@pytest.fixture
def limited():
    with KeyedTwoInputHarness(
        Limited(), lambda value: value[0], lambda value: value[0], side_outputs=[REFUSED]
    ) as harness:
        yield harness


def test_both_inputs_share_the_state_of_a_key(limited):
    limited.process_element1(("a", 5))
    limited.process_element2(("a", 3), timestamp=10)
    limited.process_element1(("a", 5))
    limited.process_element1(("b", 5))
    assert limited.output() == [("a", 5), ("b", 5)]
    assert limited.side_output(REFUSED) == [("a", 5)]
    assert limited.state("a", LIMIT) == 3


def test_timers_of_connected_streams(limited):
    limited.process_element2(("a", 3), timestamp=10)
    assert [timer.timestamp for timer in limited.timers("a")] == [110]
    limited.process_watermark1(110)
    assert limited.output() == []
    limited.process_watermark2(110)
    assert limited.output_with_timestamps() == [(("a", 110), 110)]
    assert limited.state("a", LIMIT) is None


def test_connected_streams_restored_at_another_parallelism(limited):
    for number, key in enumerate("abcdef"):
        limited.process_element2((key, number), timestamp=number)
    limited.restore(limited.snapshot(), parallelism=3)
    assert {key: limited.state(key, LIMIT) for key in "abcdef"} == {key: n for n, key in enumerate("abcdef")}
    limited.process_watermark(103)
    assert sorted(limited.output()) == [("a", 100), ("b", 101), ("c", 102), ("d", 103)]


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
NAMES = MapStateDescriptor("names", Types.INT(), Types.STRING())


class Apply(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.get_broadcast_state(RULES).get(value), ctx.current_watermark()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        ctx.get_broadcast_state(NAMES).put(value[1], value[0])


def test_broadcast_records_are_there_for_the_data_that_follows():
    with BroadcastHarness(Apply(), [RULES, NAMES]) as harness:
        harness.process_element("a")
        harness.process_broadcast_element(("a", 1))
        harness.process_element("a")
        harness.process_data_watermark(9)
        harness.process_broadcast_watermark(5)
        harness.process_element("b")
        assert harness.output() == [("a", None, START), ("a", 1, START), ("b", None, 5)]
        assert harness.broadcast_state(RULES) == {"a": 1}
        assert harness.broadcast_state(NAMES) == {1: "a"}


def test_every_subtask_has_the_broadcast_state_also_after_rescaling():
    with BroadcastHarness(Apply(), [RULES, NAMES], parallelism=2) as harness:
        harness.process_broadcast_element(("a", 1))
        harness.process_broadcast_element(("b", 2))
        assert [harness.broadcast_state(RULES, subtask=n) for n in range(2)] == [{"a": 1, "b": 2}] * 2
        harness.restore(harness.snapshot(), parallelism=5)
        assert [harness.broadcast_state(RULES, subtask=n) for n in range(5)] == [{"a": 1, "b": 2}] * 5
        with pytest.raises(LookupError, match="no operator has an operator state 'rules' in subtask 5"):
            harness.broadcast_state(RULES, subtask=5)


def test_the_data_side_may_not_write():
    class Writes(Apply):
        def process_element(self, value, ctx):
            ctx.get_broadcast_state(RULES).put(value, 1)

    with BroadcastHarness(Writes(), [RULES, NAMES]) as harness, pytest.raises(NotImplementedError, match="rules"):
        harness.process_element("a")


COUNT = ValueStateDescriptor("count", Types.INT())


class CountByRule(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.count.value() * ctx.get_broadcast_state(RULES).get("factor")


def test_keyed_state_timers_and_broadcast_state_together():
    with BroadcastHarness(CountByRule(), RULES, lambda value: value) as harness:
        harness.process_element("a")
        harness.process_element("a")
        harness.process_broadcast_element(("factor", 10))
        assert harness.state("a", COUNT) == 2
        assert len(harness.timers("a")) == 1
        harness.process_watermark(10)
        assert harness.output() == [("a", 20)]


def test_a_function_of_one_input_is_refused_where_two_are_needed():
    class One(MapFunction):
        def map(self, value):
            return value

    with pytest.raises(TypeError, match="One is not a function of two inputs"):
        TwoInputHarness(One())
    with pytest.raises(TypeError, match="a keyed harness takes a function"):
        KeyedTwoInputHarness(lambda a, b: a, lambda v: v, lambda v: v)  # type: ignore[arg-type]
