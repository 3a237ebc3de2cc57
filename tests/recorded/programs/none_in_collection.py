"""None may stand in a collection and reach a function."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, None, 3]).map(repr)
