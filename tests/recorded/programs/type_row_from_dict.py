"""A dict where a ROW is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: {"id": x, "name": "a"}, types)
