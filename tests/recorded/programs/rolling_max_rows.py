"""max on typed rows, by position."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW([Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values, types).key_by(lambda x: x[0]).max(1)
