"""Several broadcast states under their names."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
NAMES = MapStateDescriptor("names", Types.INT(), Types.STRING())


class Both(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        pass

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        names = ctx.get_broadcast_state(NAMES)
        names.put(value[1], value[0])
        yield sorted(ctx.get_broadcast_state(RULES).items()), sorted(names.items())


def build(env):
    rules = env.from_collection([("a", 1), ("b", 2), ("a", 2), ("c", 1)]).broadcast(RULES, NAMES)
    return env.from_collection([1, 2, 3]).connect(rules).process(Both())
