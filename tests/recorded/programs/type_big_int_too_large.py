"""BIG_INT beyond 64 bits as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "BIG_INT does not work as an output type."


def build(env):
    return env.from_collection([2 ** 100]).map(lambda x: x, Types.BIG_INT())
