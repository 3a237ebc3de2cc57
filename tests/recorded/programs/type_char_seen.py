"""CHAR as the next function sees it behind an exchange."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "Characters are written in one form and read in another."


def build(env):
    return env.from_collection(["a", "é"]).map(lambda x: x, Types.CHAR()).rebalance().map(lambda x: x)
