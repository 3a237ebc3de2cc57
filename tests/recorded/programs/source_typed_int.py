"""A collection of INT at the top level, with numbers that do not fit."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2 ** 31, -2 ** 31 - 1, 2 ** 32], Types.INT()).map(lambda x: x)
