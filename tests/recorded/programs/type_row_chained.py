"""A row between chained functions is the object itself."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([1]).map(lambda x: Row(x, "a"), types).map(lambda row: (row, repr(row)))
