"""Ints in a collection of DOUBLE."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2], Types.DOUBLE()).map(lambda x: x)
