"""put_all of no entries into an absent map state."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The state then says that it is not empty."


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.state.put_all([])
        yield self.state.is_empty(), list(self.state.items())


def build(env):
    return env.from_collection([0]).key_by(lambda x: 0).process(Steps())
