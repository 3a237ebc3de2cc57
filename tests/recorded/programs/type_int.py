"""INT as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([0, -2 ** 31, 2 ** 31 - 1]).map(lambda x: x, Types.INT())
