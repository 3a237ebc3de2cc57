"""map gives one result for each record, in order."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2, 3]).map(lambda x: x * 2)
