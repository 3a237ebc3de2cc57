"""A keyed broadcast function needs a keyed stream."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedBroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Both(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        yield value

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        yield value


def build(env):
    return env.from_collection([1]).connect(env.from_collection(["a"]).broadcast(RULES)).process(Both())
