"""The order of keys of type BOOLEAN."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    return env.from_collection([True, False, True]).key_by(lambda x: x, Types.BOOLEAN()).reduce(lambda a, b: a)
