"""Streams that are connected with a broadcast stream of rules, and functions over both."""

import pytest

from ekorn.common import Types
from ekorn.datastream import BroadcastProcessFunction, KeyedBroadcastProcessFunction, RuntimeExecutionMode
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
NAMES = MapStateDescriptor("names", Types.INT(), Types.STRING())
BOTH_MODES = pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])


def first(value):
    return value[0]


def beside(env, data, rules, *descriptors):
    return env.from_collection(data).connect(env.from_collection(rules).broadcast(*descriptors or (RULES,)))


def beside_keyed(env, data, rules, *descriptors):
    return (
        env.from_collection(data).key_by(first).connect(env.from_collection(rules).broadcast(*descriptors or (RULES,)))
    )


class Scale(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], value[1] * (ctx.get_broadcast_state(RULES).get(value[0]) or 1)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)


class KeyedScale(KeyedBroadcastProcessFunction):
    """Scales per key, and counts the records of the key."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT(), 0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), value[1] * (ctx.get_broadcast_state(RULES)[value[0]] or 1), self.count.value()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES)[value[0]] = value[1]
