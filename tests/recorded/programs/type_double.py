"""DOUBLE as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [1.1, -0.0, float("nan"), float("inf"), 5e-324, 1e308]
    return env.from_collection(values).map(lambda x: x, Types.DOUBLE())
