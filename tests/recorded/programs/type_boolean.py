"""BOOLEAN as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([True, False]).map(lambda x: x, Types.BOOLEAN())
