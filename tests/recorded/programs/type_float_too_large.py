"""A number beyond FLOAT."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1e300]).map(lambda x: x, Types.FLOAT()).rebalance().map(lambda x: x)
