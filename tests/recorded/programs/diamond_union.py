"""Two ways from one stream that meet in a union."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    stream = env.from_collection([1, 2, 3]).map(lambda value: value * 10)
    return stream.map(lambda value: value + 1).union(stream.filter(lambda value: value > 10)).map(lambda value: -value)
