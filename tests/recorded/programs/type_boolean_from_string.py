"""A string for a BOOLEAN."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection(["true"]).map(lambda x: x, Types.BOOLEAN())
