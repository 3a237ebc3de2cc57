"""A string where DOUBLE is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection(["1.5"]).map(lambda x: x, Types.DOUBLE())
