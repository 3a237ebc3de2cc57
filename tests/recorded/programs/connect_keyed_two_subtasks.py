"""Records of a key meet in one subtask, whichever side they come from."""

from pyflink.common import Types
from pyflink.datastream.functions import CoFlatMapFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor

PARALLELISM = 2
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
    left, right = env.from_collection(LEFT).rebalance(), env.from_collection(RIGHT).rebalance()
    keyed = left.connect(right).key_by(lambda value: value[0], lambda value: value[0], Types.STRING())
    return keyed.flat_map(Join())
