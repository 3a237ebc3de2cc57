"""Untyped tuple keys."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("a", 1, 1), ("b", 1, 2), ("a", 1, 3), ("a", 2, 4)]
    return env.from_collection(values).key_by(lambda x: (x[0], x[1])).reduce(lambda a, b: (*a[:2], a[2] + b[2]))
