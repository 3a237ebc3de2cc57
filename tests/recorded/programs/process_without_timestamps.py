"""Without assigned timestamps a record has none, and the watermark is at its minimum."""

from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Times(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def build(env):
    return env.from_collection([1, 2]).process(Times())
