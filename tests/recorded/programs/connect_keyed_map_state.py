"""A keyed co-map has a state per key that both sides see: every record counts once."""

from pyflink.common import Types
from pyflink.datastream.functions import CoMapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Count(CoMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def counted(self, key):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return key, count

    def map1(self, value):
        return self.counted(value[0])

    def map2(self, value):
        return self.counted(value)


def build(env):
    left = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("a", 4)])
    right = env.from_collection(["b", "a", "c", "b"])
    return left.connect(right).key_by(lambda value: value[0], lambda value: value).map(Count())
