"""A tuple with more fields than declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).map(lambda x: (x, "a", "more"), Types.TUPLE([Types.INT(), Types.STRING()]))
