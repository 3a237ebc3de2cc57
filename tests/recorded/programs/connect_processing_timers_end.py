"""Processing-time timers of connected streams that are open at the end do not fire."""

from pyflink.datastream.functions import KeyedCoProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Timed(KeyedCoProcessFunction):
    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10**9)
        yield 1, value

    def process_element2(self, value, ctx: KeyedCoProcessFunction.Context):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 10**9)
        yield 2, value

    def on_timer(self, timestamp, ctx: KeyedCoProcessFunction.OnTimerContext):
        yield "fired"


def build(env):
    connected = env.from_collection([1, 2, 3]).connect(env.from_collection([1, 2]))
    return connected.key_by(lambda value: value, lambda value: value).process(Timed())
