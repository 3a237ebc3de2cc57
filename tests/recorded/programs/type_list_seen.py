"""LIST as the next function sees it behind an exchange."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return (env.from_collection([[], [1], [2, 3]]).map(lambda x: x, Types.LIST(Types.LONG()))
            .rebalance().map(lambda x: x))
