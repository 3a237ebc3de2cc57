"""Sixteen readers of one stream."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    stream = env.from_collection([1, 2, 3]).map(lambda value: value * 1000)
    branches = [stream.map(lambda value, n=n: value + n) for n in range(16)]
    return branches[0].union(*branches[1:])
