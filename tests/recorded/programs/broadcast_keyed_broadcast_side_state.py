"""The broadcast side of a keyed function reads a keyed state."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedBroadcastProcessFunction, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Reads(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        self.count.update(1)

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        yield "read", self.count.value() is None


def build(env):
    nothing = env.from_collection([1, 2]).filter(lambda value: False).key_by(lambda value: value)
    return nothing.connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Reads())
