"""One side is keyed and the other is not: there are no keys for the function."""

from pyflink.common import Types
from pyflink.datastream.functions import CoFlatMapFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Join(CoFlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", Types.INT()))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", Types.STRING()))

    def flat_map1(self, value):
        self.left.add(value[1])
        return [(value[0], value[1], word) for word in self.right.get()]

    def flat_map2(self, value):
        self.right.add(value[1])
        return [(value[0], number, value[1]) for number in self.left.get()]


LEFT = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)]
RIGHT = [("b", "x"), ("a", "y"), ("d", "z"), ("a", "w")]


def build(env):
    left = env.from_collection(LEFT).key_by(lambda value: value[0])
    return left.connect(env.from_collection(RIGHT)).flat_map(Join())
