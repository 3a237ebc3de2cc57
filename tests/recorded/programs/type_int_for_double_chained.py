"""An int where DOUBLE is declared, seen by a chained function, is not converted."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1]).map(lambda x: x, Types.DOUBLE()).map(lambda x: x)
