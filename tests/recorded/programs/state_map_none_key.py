"""None as a key of a map state."""

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
        self.state.put(None, value)
        yield self.state.contains(None), self.state.get(None)


def build(env):
    return env.from_collection([1, 2]).key_by(lambda x: 0).process(Store())
