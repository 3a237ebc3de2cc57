"""A tuple where a LIST is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([(2, 3)]).map(lambda x: x, Types.LIST(Types.LONG()))
