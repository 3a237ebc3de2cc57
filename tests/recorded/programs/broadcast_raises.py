"""The broadcast side raises."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Both(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield value

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        raise KeyError(value)


def build(env):
    return env.from_collection([1]).connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Both())
