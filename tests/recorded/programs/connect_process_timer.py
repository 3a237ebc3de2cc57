"""Without keys there are no timers in a co-process function."""

from pyflink.datastream.functions import CoProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Both(CoProcessFunction):
    def process_element1(self, value, ctx: CoProcessFunction.Context):
        ctx.timer_service().register_event_time_timer(10)

    def process_element2(self, value, ctx: CoProcessFunction.Context):
        yield value


def build(env):
    return env.from_collection([1, 2]).connect(env.from_collection(["a"])).process(Both())
