"""Map state: absent, put, put_all, removed, the last entry removed, cleared."""

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
        step, *arguments = value
        getattr(self.state, step)(*arguments)
        yield (step, sorted(self.state.keys()), sorted(self.state.values()), sorted(self.state.items()),
               self.state.get("a"), self.state.contains("a"))


def build(env):
    steps = [("contains", "a"), ("put", "a", 1), ("put", "b", 2), ("put", "a", 3), ("remove", "b"), ("remove", "b"),
             ("remove", "a"), ("put_all", [("c", 4), ("a", 5)]), ("put_all", []), ("clear",), ("remove", "a"),
             ("put", "d", 0)]
    return env.from_collection(steps).key_by(lambda x: 0).process(Steps())
