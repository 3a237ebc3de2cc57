"""Twelve functions, with an exchange between each two."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    stream = env.from_collection([1, 2, 3])
    for _ in range(12):
        stream = stream.map(lambda value: value + 1).rebalance()
    return stream.map(lambda value: value * 100)
