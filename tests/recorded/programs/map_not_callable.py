"""A function that is neither a MapFunction nor callable is refused where it is given."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1]).map(42)
