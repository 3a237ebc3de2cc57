"""A flat_map may return a list, a tuple or a range."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([0, 1, 2, 3]).flat_map(lambda n: [[], (n,), range(n), [n, [n]]][n])
