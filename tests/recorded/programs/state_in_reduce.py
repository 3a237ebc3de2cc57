"""A ReduceFunction may keep keyed state of its own."""

from pyflink.common import Types
from pyflink.datastream.functions import ReduceFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Summing(ReduceFunction):

    def open(self, runtime_context: RuntimeContext):
        self.calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.INT()))

    def reduce(self, value1, value2):
        calls = (self.calls.value() or 0) + 1
        self.calls.update(calls)
        return value1[0], value1[1] + value2[1], calls


def build(env):
    values = [("a", 1, 0), ("a", 2, 0), ("b", 5, 0), ("a", 3, 0), ("b", 6, 0)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(Summing())
