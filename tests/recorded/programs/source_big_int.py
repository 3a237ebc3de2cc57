"""A collection of BIG_INT with a number beyond 64 bits."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The number is silently replaced by another."


def build(env):
    return env.from_collection([2 ** 100], Types.BIG_INT()).map(lambda x: x)
