"""The broadcast side of a keyed function has no current key."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedBroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Asks(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        yield value

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        yield ctx.get_current_key()


def build(env):
    keyed = env.from_collection([1, 2]).key_by(lambda value: value)
    return keyed.connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Asks())
