"""PICKLED_BYTE_ARRAY is what an omitted type means."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1]).map(lambda x: {"any": (x, None)}, Types.PICKLED_BYTE_ARRAY())
