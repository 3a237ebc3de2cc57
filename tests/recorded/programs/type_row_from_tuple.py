"""A tuple where a ROW is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).map(lambda x: (x, "a"), Types.ROW([Types.INT(), Types.STRING()]))
