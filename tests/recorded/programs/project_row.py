"""Rows cannot be projected."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([(1, "a")], Types.ROW([Types.INT(), Types.STRING()])).project(1)
