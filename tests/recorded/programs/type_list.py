"""LIST as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([0, 2]).map(lambda n: list(range(n)), Types.LIST(Types.INT()))
