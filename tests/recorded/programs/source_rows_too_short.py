"""A tuple with fewer fields than the ROW."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([(1,)], Types.ROW([Types.INT(), Types.STRING()])).map(lambda row: row)
