"""None where STRING is declared."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The collecting iterator takes the null for its end; later records are lost."


def build(env):
    return env.from_collection(["a", None, "b"]).map(lambda x: x, Types.STRING())
