"""A value that does not fit its declared type passes between chained functions."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1]).map(lambda x: "text", Types.INT()).map(lambda x: (x,))
