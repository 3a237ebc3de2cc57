"""BIG_INT as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "BIG_INT does not work as an output type: it is written as 64 bits and read as something else."


def build(env):
    return env.from_collection([0, -1, 2 ** 62]).map(lambda x: x, Types.BIG_INT())
