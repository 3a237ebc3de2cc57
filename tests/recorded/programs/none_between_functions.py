"""None passes from one chained function to the next."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2]).map(lambda x: None).map(repr)
