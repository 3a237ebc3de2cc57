"""Keys, values and entries of a broadcast state, each looked at by itself."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Views(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        pass

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        state = ctx.get_broadcast_state(RULES)
        state.put(value, len(value))
        yield sorted(state.keys())
        yield sorted(state.values())
        yield sorted(state)
        yield sorted(state.items())


def build(env):
    rules = env.from_collection(["a", "bb", "ccc"]).broadcast(RULES)
    return env.from_collection([1]).connect(rules).process(Views())
