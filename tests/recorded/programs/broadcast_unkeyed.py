"""A broadcast function without keys: each side comes in on its own method."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Both(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield "data", value

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        yield "rules", sorted(ctx.get_broadcast_state(RULES).items())


def build(env):
    rules = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).broadcast(RULES)
    return env.from_collection([1, 2, 3]).connect(rules).process(Both())
