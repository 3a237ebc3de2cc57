"""A ReduceFunction in a reducing state."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, ReduceFunction, RuntimeContext
from pyflink.datastream.state import ReducingStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Longest(ReduceFunction):

    def reduce(self, value1, value2):
        return max(value1, value2, key=len)


class Steps(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_reducing_state(ReducingStateDescriptor("state", Longest(), Types.STRING()))

    def map(self, value):
        self.state.add(value[1])
        return value[0], self.state.get()


def build(env):
    values = [("a", "xx"), ("b", "y"), ("a", "z"), ("b", "yyy"), ("a", "wwww")]
    return env.from_collection(values).key_by(lambda x: x[0]).map(Steps())
