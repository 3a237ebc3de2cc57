"""An integer that does not fit BYTE."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([128, 300]).map(lambda x: x, Types.BYTE())
