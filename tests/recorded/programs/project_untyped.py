"""project needs a declared tuple type."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([(1, "a"), (2, "b")]).project(1)
