"""A flat_map that returns a string gives its characters."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection(["ab", "c"]).flat_map(lambda text: text)
