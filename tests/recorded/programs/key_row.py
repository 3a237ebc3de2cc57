"""Rows as untyped keys, with another key in between."""

from pyflink.common import Row

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("a", 1), ("b", 2), ("a", 3)]
    return env.from_collection(values).key_by(lambda x: Row(x[0])).reduce(lambda a, b: (a[0], a[1] + b[1]))
