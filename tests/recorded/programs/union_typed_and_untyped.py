"""Nor a typed and an untyped one."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1], Types.INT()).union(env.from_collection([2]))
