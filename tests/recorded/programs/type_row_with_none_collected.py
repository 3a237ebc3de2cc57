"""None in the fields of a ROW, collected."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW([Types.INT(), Types.STRING()])
    return env.from_collection([Row(None, "a"), Row(1, None)]).map(lambda row: row, types)
