"""Connected streams without keys in a batch job."""

from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "BATCH"
ORDERED = False


class Both(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


def build(env):
    return env.from_collection([1, 2, 3]).connect(env.from_collection(["a", "b"])).map(Both())
