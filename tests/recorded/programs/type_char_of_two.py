"""Two characters for a CHAR."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "As in type_char."


def build(env):
    return env.from_collection(["ab"]).map(lambda x: x, Types.CHAR())
