"""A FlatMapFunction with an attribute."""

from pyflink.datastream.functions import FlatMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Repeat(FlatMapFunction):

    def __init__(self, times):
        self.times = times

    def flat_map(self, value):
        for n in range(self.times):
            yield value, n


def build(env):
    return env.from_collection(["a", "b"]).flat_map(Repeat(2))
