"""A ProcessFunction may return a list, or None for nothing."""

from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Returning(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        return [value, value] if value > 1 else None


def build(env):
    return env.from_collection([1, 2, 3]).process(Returning())
