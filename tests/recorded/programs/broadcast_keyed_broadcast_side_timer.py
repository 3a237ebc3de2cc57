"""The broadcast side of a keyed function has no timers."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedBroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Timed(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        yield value

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        ctx.timer_service().register_event_time_timer(100)


def build(env):
    keyed = env.from_collection([1, 2]).key_by(lambda value: value)
    return keyed.connect(env.from_collection(["a", "b"]).broadcast(RULES)).process(Timed())
