"""A dict put into a broadcast state."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "PyFlink iterates over the dict as if it were pairs."


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Puts(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        pass

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        state = ctx.get_broadcast_state(RULES)
        state.put_all({name: number for number, name in enumerate(value)})
        yield sorted(state.items())


def build(env):
    rules = env.from_collection(["abc", "bd"]).broadcast(RULES)
    return env.from_collection([1]).connect(rules).process(Puts())
