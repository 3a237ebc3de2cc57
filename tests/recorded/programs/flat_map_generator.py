"""A flat_map that yields gives its results in order."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def split(line):
    yield from line.split()


def build(env):
    return env.from_collection(["to be or", "", "not to be"]).flat_map(split)
