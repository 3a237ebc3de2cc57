"""ROW_NAMED as the next function sees it behind an exchange."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    rows = env.from_collection([1, 2]).map(lambda x: Row(x, "a"), types)
    return rows.rebalance().map(lambda row: (row, repr(row), row[0], row.id, row["name"], row.as_dict()))
