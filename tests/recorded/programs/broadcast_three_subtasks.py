"""Behind a map on three subtasks, every subtask still gets every rule once."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 3
MODE = "STREAMING"
ORDERED = False


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Both(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield "data", value

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        yield "rule", value


def build(env):
    rules = env.from_collection(["a", "b", "c"]).map(lambda value: value + "!").broadcast(RULES)
    return env.from_collection([1, 2]).connect(rules).process(Both())
