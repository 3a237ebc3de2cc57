"""The same keys with the type STRING."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = [f"user_{i * 7 % 30}" for i in range(30)]
    return env.from_collection(keys).key_by(lambda x: x, Types.STRING()).reduce(lambda a, b: a)
