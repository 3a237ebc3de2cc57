"""Integers for a BOOLEAN."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([0, 1, 2]).map(lambda x: x, Types.BOOLEAN())
