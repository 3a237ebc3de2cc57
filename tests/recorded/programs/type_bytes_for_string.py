"""Bytes where STRING is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([b"a"]).map(lambda x: x, Types.STRING())
