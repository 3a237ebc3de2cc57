"""A list taken from a broadcast state and changed, and not put back."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "PyFlink hands out the object that is in the state, so that a change shows that nobody wrote."


RULES = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())


class Operations(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        pass

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        state = ctx.get_broadcast_state(RULES)
        kept = state.get("list") or []
        kept.append(value)
        if value % 2:
            state.put("list", kept)
        yield value, list(kept), list(state.get("list") or [])


def build(env):
    numbers = env.from_collection([1, 2, 3, 4, 5]).broadcast(RULES)
    return env.from_collection([1]).connect(numbers).process(Operations())
