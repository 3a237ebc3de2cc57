"""A flat_map that returns None."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).flat_map(lambda n: None if n == 1 else [n])
