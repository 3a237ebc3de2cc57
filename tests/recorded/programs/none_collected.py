"""Nor be collected as a record."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "As in none_leaves_a_chain."


def build(env):
    return env.from_collection([1, 2]).map(lambda x: None if x == 1 else x)
