"""FLOAT as the next function sees it behind an exchange."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [1.1, -0.0, 16777217.0, float("nan"), float("inf"), 1e-45, 3]
    return env.from_collection(values).map(lambda x: x, Types.FLOAT()).rebalance().map(lambda x: x)
