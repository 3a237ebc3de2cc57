"""Two connected streams: each record to the method of its side, state and timers shared where there are keys."""

import pytest

from tamias.common import Types
from tamias.datastream import KeyedCoProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from tamias.datastream.state import ValueStateDescriptor
from tamias.testing.local_run import collect_locally

LEFT = [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("b", 5)]
RIGHT = [("a", 10), ("b", 20), ("a", 30), ("c", 40), ("a", 50), ("a", 60)]


def first(value):
    return value[0]


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


class CountBoth(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))

    def process_element1(self, value, ctx):
        yield "left", ctx.get_current_key(), value[1], self._next()

    def process_element2(self, value, ctx):
        yield "right", ctx.get_current_key(), value[1], self._next()

    def _next(self):
        self.count.update(self.count.value() + 1)
        return self.count.value()


def test_both_sides_share_the_state_of_a_key(env):
    both = env.from_collection(LEFT).connect(env.from_collection(RIGHT)).key_by(first, first)
    found = collect_locally(both.process(CountBoth()))
    assert [f for f in found if f[1] == "a"][-1][3] == 7
    assert [f[2] for f in found if f[0] == "left"] == [1, 2, 3, 4, 5]


def test_in_batch_mode_all_records_of_a_key_come_before_the_next_key(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    both = env.from_collection(LEFT).connect(env.from_collection(RIGHT)).key_by(first, first)
    assert [(f[1], f[2], f[3]) for f in collect_locally(both.process(CountBoth()))] == [
        ("a", 1, 1), ("a", 10, 2), ("a", 2, 3), ("a", 30, 4), ("a", 4, 5), ("a", 50, 6), ("a", 60, 7),
        ("b", 3, 1), ("b", 20, 2), ("b", 5, 3), ("c", 40, 1),
    ]  # fmt: skip
