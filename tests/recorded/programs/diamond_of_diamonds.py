"""A stream that is split and united four times over."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    stream = env.from_collection([0, 1])
    for _ in range(4):
        stream = stream.map(lambda value: value * 2).union(stream.map(lambda value: value * 2 + 1))
    return stream.map(lambda value: value)
