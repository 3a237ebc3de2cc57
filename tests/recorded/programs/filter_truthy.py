"""The predicate's result is judged by its truth."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([0, 1, "", "a", None, [], [0]]).filter(lambda x: x)
