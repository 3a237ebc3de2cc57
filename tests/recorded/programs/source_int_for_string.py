"""An int in a collection of STRING."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1], Types.STRING()).map(lambda x: x)
