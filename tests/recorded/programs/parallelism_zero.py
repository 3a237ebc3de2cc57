"""Parallelism must be positive."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).map(lambda x: x).set_parallelism(0)
