"""Two ways from one stream that meet in a keyed co-function."""

from pyflink.common import Types
from pyflink.datastream.functions import CoFlatMapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Join(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.left = runtime_context.get_state(ValueStateDescriptor("left", Types.STRING()))
        self.right = runtime_context.get_state(ValueStateDescriptor("right", Types.STRING()))

    def flat_map1(self, value):
        self.left.update(value[1])
        if self.right.value() is not None:
            yield value[0], value[1], self.right.value()

    def flat_map2(self, value):
        self.right.update(value[1])
        if self.left.value() is not None:
            yield value[0], self.left.value(), value[1]


def build(env):
    stream = env.from_collection([1, 2, 3, 4])
    words = stream.map(lambda value: (value, "x" * value))
    signs = stream.filter(lambda value: value != 3).map(lambda value: (value, "even" if value % 2 == 0 else "odd"))
    return words.connect(signs).key_by(lambda value: value[0], lambda value: value[0]).flat_map(Join())
