"""A float where INT is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1.0, 2.7]).map(lambda x: x, Types.INT())
