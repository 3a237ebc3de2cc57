"""forward between different parallelisms is refused."""

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 2, 3]).forward().map(lambda x: x)
