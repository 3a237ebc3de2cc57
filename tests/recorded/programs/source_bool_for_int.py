"""Bools in a collection of INT."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([True, 2], Types.INT()).map(lambda x: x)
