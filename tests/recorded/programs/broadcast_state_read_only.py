"""The data side may not write."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Both(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        ctx.get_broadcast_state(RULES).put(value, 1)
        yield value

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        pass


def build(env):
    return env.from_collection(["x"]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Both())
