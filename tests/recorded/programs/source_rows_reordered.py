"""A named row whose names come in another order than the declared ones."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([Row(name="a", id=1)], types).map(lambda row: row)
