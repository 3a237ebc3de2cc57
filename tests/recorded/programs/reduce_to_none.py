"""reduce to None."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2, 3]).key_by(lambda x: 0).reduce(lambda a, b: None)
