"""None in the fields of a ROW, and a row inside, behind an exchange."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW([Types.INT(), Types.STRING(), Types.ROW([Types.INT()])])
    rows = [Row(None, "a", Row(1)), Row(1, None, None), Row(2, "b", Row(None))]
    return env.from_collection(rows).map(lambda row: row, types).rebalance().map(lambda row: row)
