"""print of typed rows."""

from pyflink.common import Row, RowKind, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    types = Types.ROW([Types.INT(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE(), Types.LIST(Types.INT())])
    values = [Row(1, "a", True, 0.5, [1, 2]), Row.of_kind(RowKind.DELETE, None, None, False, 1e10, [])]
    env.from_collection(values, types).map(lambda row: row, types).print()
