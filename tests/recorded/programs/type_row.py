"""ROW as the output of a function; its fields get the names f0, f1."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).map(lambda x: Row(x, "a"), Types.ROW([Types.INT(), Types.STRING()]))
