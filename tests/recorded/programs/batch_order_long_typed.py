"""The order of keys of type LONG."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = [5, 1, 0, -1, 10, 300, -300, 2 ** 40, -2 ** 40, 2 ** 63 - 1, -2 ** 63, 2, -2]
    return env.from_collection(keys).key_by(lambda x: x, Types.LONG()).reduce(lambda a, b: a)
