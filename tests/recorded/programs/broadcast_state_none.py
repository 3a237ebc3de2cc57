"""None as a value in a broadcast state."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "PyFlink takes None for absent in contains(), while it is among the values."


RULES = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())


class Operations(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        pass

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        state = ctx.get_broadcast_state(RULES)
        state.put(value, None)
        yield value, state.get(value), state.contains(value), list(state.values()), state.is_empty()


def build(env):
    return env.from_collection([1]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Operations())
