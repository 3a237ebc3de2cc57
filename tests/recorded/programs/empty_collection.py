"""A stream of nothing."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([]).map(lambda x: x)
