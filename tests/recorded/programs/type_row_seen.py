"""ROW as the next function sees it behind an exchange."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    rows = env.from_collection([1, 2]).map(lambda x: Row(x, "a"), Types.ROW([Types.INT(), Types.STRING()]))
    return rows.rebalance().map(lambda row: (row, repr(row), row[0], row.f1, row["f1"], len(row), list(row)))
