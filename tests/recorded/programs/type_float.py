"""FLOAT collected: the shortest digits that give the same 32-bit number."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [1.1, -0.0, 16777217.0, 0.1, 1e10, 1e-45, 3.4028234663852886e38]
    return env.from_collection(values).map(lambda x: x, Types.FLOAT())
