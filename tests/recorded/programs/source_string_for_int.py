"""A string in a collection of INT."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection(["1"], Types.INT()).map(lambda x: x)
