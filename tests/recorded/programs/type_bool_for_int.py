"""A bool where INT is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([True]).map(lambda x: x, Types.INT())
