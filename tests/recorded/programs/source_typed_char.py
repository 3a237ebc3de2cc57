"""A collection of CHAR."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The bridge reads a character as a string and cannot make a CHAR of it."


def build(env):
    return env.from_collection(["a"], Types.CHAR()).map(lambda x: x)
