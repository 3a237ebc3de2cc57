"""Removing entries of a map state while iterating over a copy of its keys."""

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
        self.state.put("a", 1)
        self.state.put("b", 2)
        yield sorted(self.state)
        for key in list(self.state.keys()):
            self.state.remove(key)
        yield self.state.is_empty()


def build(env):
    return env.from_collection([0]).key_by(lambda x: 0).process(Steps())
