"""None as a key of type STRING, with another key in between."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("x", 1), (None, 1), ("x", 1), (None, 2)]
    keyed = env.from_collection(values).key_by(lambda x: x[0], Types.STRING())
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))
