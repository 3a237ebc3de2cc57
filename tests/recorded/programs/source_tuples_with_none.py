"""None in the fields of a collection of TUPLE."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [(None, "a"), (1, None)]
    return env.from_collection(values, Types.TUPLE([Types.INT(), Types.STRING()])).map(lambda pair: pair)
