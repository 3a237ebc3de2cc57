"""A union holds the records of all its streams."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    first = env.from_collection([1, 2])
    return first.union(env.from_collection([2, 3]), env.from_collection([4])).map(lambda x: x)
