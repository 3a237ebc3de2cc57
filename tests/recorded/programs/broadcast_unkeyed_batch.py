"""In a batch job all broadcast records come before the data."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Apply(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        rules = ctx.get_broadcast_state(RULES)
        yield value, rules.get(value), rules.contains(value), sorted(rules.keys())

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        state = ctx.get_broadcast_state(RULES)
        state.put(value[0], (state.get(value[0]) or 0) + value[1])


def build(env):
    rules = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).broadcast(RULES)
    return env.from_collection(["b", "a", "c", "a"]).connect(rules).process(Apply())
