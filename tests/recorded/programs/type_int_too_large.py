"""An integer that does not fit INT."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([2 ** 31]).map(lambda x: x, Types.INT())
