"""BASIC_ARRAY as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1]).map(lambda x: ["a", "b"], Types.BASIC_ARRAY(Types.STRING()))
