"""An int where STRING is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1]).map(lambda x: x, Types.STRING())
