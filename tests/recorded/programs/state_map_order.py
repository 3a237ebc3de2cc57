"""The order in which a map state is iterated."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.state.put(value, len(value))
        yield list(self.state.keys()), list(self.state.values()), list(self.state.items())


def build(env):
    return env.from_collection(["zz", "b", "a", "zz", "ccc"]).key_by(lambda x: 0).process(Steps())
