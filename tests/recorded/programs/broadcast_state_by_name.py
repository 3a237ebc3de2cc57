"""A broadcast state is found by its name, whichever descriptor asks."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Both(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        pass

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        ctx.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.INT())).put(value, len(value))
        again = ctx.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
        yield sorted(again.items())


def build(env):
    rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    return env.from_collection([1]).connect(env.from_collection(["a", "bb"]).broadcast(rules)).process(Both())
