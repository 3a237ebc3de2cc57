"""A ProcessFunction gives what it yields."""

from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Twice(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        if value != 2:
            yield value
            yield value * 10


def build(env):
    return env.from_collection([1, 2, 3]).process(Twice())
