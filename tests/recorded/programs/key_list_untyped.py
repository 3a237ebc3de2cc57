"""Lists as untyped keys, with another key in between."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [([1], 1), ([2], 1), ([1], 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
