"""None for a row inside a row, collected."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The bridge cannot read it; between functions it works."


def build(env):
    types = Types.ROW([Types.INT(), Types.ROW([Types.INT()])])
    return env.from_collection([Row(1, None)]).map(lambda row: row, types)
