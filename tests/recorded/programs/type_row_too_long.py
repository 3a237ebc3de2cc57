"""A row with more fields than declared."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).map(lambda x: Row(x, "a", 3), Types.ROW([Types.INT(), Types.STRING()]))
