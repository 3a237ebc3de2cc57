"""Timers may not be set on a stream without keys."""

from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Timer(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        ctx.timer_service().register_event_time_timer(1)
        yield value


def build(env):
    return env.from_collection([1]).process(Timer())
