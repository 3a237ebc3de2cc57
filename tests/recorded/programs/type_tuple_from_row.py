"""A row where a TUPLE is declared."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.TUPLE([Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: Row(x, "a"), types)
