"""A keyed stream's process takes a KeyedProcessFunction only."""

from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Pass(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value


def build(env):
    return env.from_collection([1]).key_by(lambda x: x).process(Pass())
