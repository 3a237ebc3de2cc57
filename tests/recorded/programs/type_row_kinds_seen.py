"""Row kinds as the next function sees them behind an exchange."""

from pyflink.common import Row, RowKind, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    rows = [Row.of_kind(kind, n) for n, kind in enumerate(kinds)]
    return (env.from_collection(rows).map(lambda row: row, Types.ROW([Types.INT()]))
            .rebalance().map(lambda row: (str(row.get_row_kind()), row[0])))
