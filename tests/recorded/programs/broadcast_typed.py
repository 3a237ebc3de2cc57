"""A declared type of a broadcast function's results."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Both(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield value, str(value)

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        yield len(value), value


def build(env):
    rules = env.from_collection(["a", "bb"]).broadcast(RULES)
    both = env.from_collection([1, 2, 3]).connect(rules).process(Both(), Types.TUPLE([Types.INT(), Types.STRING()]))
    return both.map(lambda value: value)
