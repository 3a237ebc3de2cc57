"""Whether a map state is empty after its last entry was removed, after nothing was put, and after it was cleared."""

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
        yield "before", self.state.is_empty(), list(self.state.items())
        step, *arguments = value
        getattr(self.state, step)(*arguments)
        yield step, self.state.is_empty(), list(self.state.items())


def build(env):
    steps = [("remove", "a"), ("put", "a", 1), ("remove", "a"), ("put", "b", 2), ("clear",), ("put", "c", 3)]
    return env.from_collection(steps).key_by(lambda x: 0).process(Steps())
