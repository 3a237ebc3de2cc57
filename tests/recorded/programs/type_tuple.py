"""TUPLE as the output of a function, with a tuple inside."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.TUPLE([Types.INT(), Types.TUPLE([Types.STRING(), Types.DOUBLE()]), Types.BOOLEAN()])
    return env.from_collection([1, 2]).map(lambda x: (x, ("s", x / 2), x == 1), types)
