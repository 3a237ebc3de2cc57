"""A collection of BIG_INT with a number that fits 64 bits."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The bridge reads the number as a long and cannot make a BIG_INT of it."


def build(env):
    return env.from_collection([2 ** 40], Types.BIG_INT()).map(lambda x: x)
