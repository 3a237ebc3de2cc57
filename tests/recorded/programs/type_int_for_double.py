"""An int where DOUBLE is declared, seen behind an exchange."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2 ** 60]).map(lambda x: x, Types.DOUBLE()).rebalance().map(lambda x: x)
