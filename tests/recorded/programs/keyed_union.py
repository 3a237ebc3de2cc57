"""A union of keyed streams holds their values and is not keyed."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    left = env.from_collection([("a", 1), ("b", 2)]).key_by(lambda x: x[0])
    right = env.from_collection([("a", 3)]).key_by(lambda x: x[0])
    return left.union(right).map(lambda x: x)
