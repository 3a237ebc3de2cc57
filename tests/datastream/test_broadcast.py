"""Broadcast state: written by the broadcast side, read by the other, the same on every subtask."""

import pytest

from tamias.common import Types
from tamias.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from tamias.datastream.state import ListStateDescriptor, MapStateDescriptor
from tamias.testing.local_run import collect_locally

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
HELD = ListStateDescriptor("held", Types.INT())


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


def first(value):
    return value[0]


class Scale(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], value[1] * (ctx.get_broadcast_state(RULES).get(value[0]) or 1)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_the_broadcast_records_of_an_epoch_come_first(env, mode):
    env.set_runtime_mode(mode)
    rules = env.from_collection([("a", 10), ("b", 100), ("a", 20)]).broadcast(RULES)
    data = env.from_collection([("a", 1), ("b", 2), ("c", 3)])
    assert collect_locally(data.connect(rules).process(Scale())) == [("a", 20), ("b", 200), ("c", 3)]


class HoldThenRelease(KeyedBroadcastProcessFunction):
    """Holds numbers per key; a rule of 0 for a key releases what all keys hold."""

    def open(self, runtime_context):
        self.held = runtime_context.get_list_state(HELD)

    def process_element(self, value, ctx):
        self.held.add(value[1])
        if value[1] == 99:
            yield ctx.get_current_key(), list(self.held.get()), sorted(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        found = []

        def take(key, state):
            found.append((key, list(state.get())))
            state.clear()

        ctx.apply_to_keyed_state(HELD, take)
        yield from sorted(found)


def test_every_subtask_has_the_state(env):
    env.set_parallelism(3)
    rules = env.from_collection([("x", 1), ("y", 2)]).broadcast(RULES)
    data = env.from_collection([(key, 99) for key in "abcdefgh"])
    found = collect_locally(data.key_by(first).connect(rules).process(HoldThenRelease()))
    assert sorted(found) == [(key, [99], [("x", 1), ("y", 2)]) for key in "abcdefgh"]
