"""None in the fields of a collection of ROW and kinds."""

from pyflink.common import Row, RowKind, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [(None, "a"), (1, None), Row.of_kind(RowKind.DELETE, 2, "b")]
    return env.from_collection(values, Types.ROW([Types.INT(), Types.STRING()])).map(lambda row: row)
