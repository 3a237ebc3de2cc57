"""Parallelism may not exceed the maximum parallelism."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).key_by(lambda x: x).map(lambda x: x).set_max_parallelism(2).set_parallelism(3)
