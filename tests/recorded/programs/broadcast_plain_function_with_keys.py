"""A broadcast function without keys needs a stream without keys."""

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
        yield value


def build(env):
    keyed = env.from_collection([1]).key_by(lambda value: value)
    return keyed.connect(env.from_collection(["a"]).broadcast(RULES)).process(Both())
