"""Both sides of a broadcast function emit to side outputs."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
TAG = OutputTag("tagged", Types.STRING())


class Both(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield TAG, f"data {value}"
        yield value

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        yield TAG, f"rule {value}"


def build(env):
    rules = env.from_collection(["a", "b"]).broadcast(RULES)
    main = env.from_collection([1, 2, 3]).connect(rules).process(Both())
    return main.get_side_output(TAG)
