"""A float as a key of type INT."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([(1.0, "float")]).key_by(lambda pair: pair[0], Types.INT()).map(lambda x: x)
