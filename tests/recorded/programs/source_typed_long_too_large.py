"""A collection with a number beyond LONG."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([2 ** 63], Types.LONG()).map(lambda x: x)
