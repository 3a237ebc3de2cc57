"""CHAR collected."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "Every character is lost."


def build(env):
    return env.from_collection(["a", "é", "你"]).map(lambda x: x, Types.CHAR())
