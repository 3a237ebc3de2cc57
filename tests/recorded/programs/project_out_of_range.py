"""A field that does not exist."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([(1, "a")], Types.TUPLE([Types.INT(), Types.STRING()])).project(2)
