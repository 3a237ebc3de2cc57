"""Counts per key at parallelism 2."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


class Count(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return value, count


def build(env):
    return env.from_collection([f"k{i % 7}" for i in range(30)]).key_by(lambda x: x).map(Count())
