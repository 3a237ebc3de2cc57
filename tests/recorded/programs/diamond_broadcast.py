"""A stream whose own sum is broadcast to it."""

from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


SUMS = MapStateDescriptor("sums", Types.STRING(), Types.INT())


class Share(BroadcastProcessFunction):
    def process_element(self, value, ctx: BroadcastProcessFunction.ReadOnlyContext):
        yield value, ctx.get_broadcast_state(SUMS).get("all")

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        ctx.get_broadcast_state(SUMS).put("all", value)


def build(env):
    stream = env.from_collection([1, 2, 3, 4])
    total = stream.key_by(lambda value: "all").reduce(lambda a, b: a + b)
    return stream.connect(total.broadcast(SUMS)).process(Share())
