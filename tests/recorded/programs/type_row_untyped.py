"""Rows without a declared type travel pickled and keep names and kind."""

from pyflink.common import Row, RowKind

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    rows = [Row(1, "a"), Row(id=1, name="a"), Row.of_kind(RowKind.DELETE, 1), Row()]
    return env.from_collection(rows).map(lambda row: row)
