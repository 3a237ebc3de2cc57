"""filter keeps the records for which the predicate holds."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2, 3, 4]).filter(lambda x: x % 2 == 0)
