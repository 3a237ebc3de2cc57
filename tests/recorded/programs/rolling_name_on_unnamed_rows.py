"""The names f0, f1 on rows without names."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    rows = env.from_collection([("a", 1), ("a", 2)], Types.ROW([Types.STRING(), Types.INT()]))
    return rows.key_by(lambda x: x[0]).sum("f1")
