"""In a batch job processing-time timers fire at the end of their key, whatever their time."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction

PARALLELISM = 1
MODE = "BATCH"
ORDERED = False


class Timed(KeyedProcessFunction):
    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        ctx.timer_service().register_processing_time_timer(10**14 + value[1])
        yield value

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name


def build(env):
    values = [("a", 5), ("b", 2), ("a", 3), ("b", 4), ("a", 5)]
    return env.from_collection(values).key_by(lambda value: value[0], Types.STRING()).process(Timed())
