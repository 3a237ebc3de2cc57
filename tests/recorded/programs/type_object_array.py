"""OBJECT_ARRAY as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.OBJECT_ARRAY(Types.TUPLE([Types.INT(), Types.STRING()]))
    return env.from_collection([1]).map(lambda x: [(1, "a"), (2, "b")], types)
