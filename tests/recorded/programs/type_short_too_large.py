"""An integer that does not fit SHORT."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([2 ** 15, 70000]).map(lambda x: x, Types.SHORT())
