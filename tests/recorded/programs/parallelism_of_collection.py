"""A collection source cannot be made parallel."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).set_parallelism(2)
