"""None inside a row inside a row, collected."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW([Types.INT(), Types.ROW([Types.INT()])])
    return env.from_collection([Row(1, Row(None))]).map(lambda row: row, types)
