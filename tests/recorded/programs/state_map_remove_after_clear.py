"""Removing an absent entry after a clear and a put."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "It raises a KeyError, whereas removing an absent entry otherwise does nothing."


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_map_state(MapStateDescriptor("state", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.state.clear()
        self.state.put("b", 1)
        self.state.remove("a")
        yield list(self.state.items())


def build(env):
    return env.from_collection([0]).key_by(lambda x: 0).process(Steps())
