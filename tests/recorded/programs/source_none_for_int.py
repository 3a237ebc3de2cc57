"""None in a collection of INT."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([None], Types.INT()).map(repr)
