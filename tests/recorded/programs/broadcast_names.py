"""Names that broadcast functions have by default."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Plain(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield value

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        yield value


class Keyed(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        yield value

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        yield value


def build(env):
    rules = env.from_collection(["a"]).broadcast(RULES)
    data = env.from_collection([1])
    return [data.connect(rules).process(Plain()).get_name(),
            data.key_by(lambda value: value).connect(rules).process(Keyed()).get_name()]
