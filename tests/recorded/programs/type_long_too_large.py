"""An integer that does not fit LONG."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([2 ** 63]).map(lambda x: x, Types.LONG())
