"""A co-map is a function of its own kind: a lambda is none."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1]).connect(env.from_collection(["a"])).map(lambda value: value)
