"""1 and True as keys of type INT, with another key in between: one key."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [(1, "int"), (0, ""), (True, "bool"), (0, ""), (1, "int again")]
    return env.from_collection(values).key_by(lambda x: x[0], Types.INT()).reduce(lambda a, b: (a[0], a[1] + b[1]))
