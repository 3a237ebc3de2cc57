"""Every subtask sees every broadcast record, and each data record goes to one of them."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Both(BroadcastProcessFunction):
    def open(self, runtime_context):
        self.seen = 0

    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield "data", value

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        state = ctx.get_broadcast_state(RULES)
        state.put(value[0], (state.get(value[0]) or 0) + value[1])
        yield "rules", sorted(state.items())


def build(env):
    rules = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).broadcast(RULES)
    return env.from_collection([1, 2, 3]).rebalance().connect(rules).process(Both())
