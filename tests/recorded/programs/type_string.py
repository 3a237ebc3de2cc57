"""STRING as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = ["", "a", "é你😀", "\x00\n", "'\""]
    return env.from_collection(values).map(lambda x: x, Types.STRING()).rebalance().map(lambda x: x, Types.STRING())
