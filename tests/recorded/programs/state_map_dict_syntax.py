"""A map state is not a dict, but for a few operators."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Store(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.state["a"] = value
        self.state["b"] = value + 1
        found = [self.state["a"], "a" in self.state, "c" in self.state, sorted(self.state)]
        del self.state["a"]
        yield [*found, "a" in self.state]


def build(env):
    return env.from_collection([1]).key_by(lambda x: 0).process(Store())
