"""PRIMITIVE_ARRAY as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1]).map(lambda x: [1, 2], Types.PRIMITIVE_ARRAY(Types.INT()))
