"""A union of twenty streams."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    streams = [env.from_collection([(n, m) for m in range(3)]) for n in range(20)]
    return streams[0].union(*streams[1:]).map(lambda value: value)
