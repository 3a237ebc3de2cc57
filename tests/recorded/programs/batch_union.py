"""A union in BATCH mode."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = False


def build(env):
    return env.from_collection([1, 2]).union(env.from_collection([3])).map(lambda x: x)
