"""A row built with names in another order than declared."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: Row(name="a", id=x), types)
