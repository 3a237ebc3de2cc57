"""Sums of sums: keyed streams one behind the other."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4)])
    for _ in range(5):
        stream = stream.key_by(lambda value: value[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    return stream
