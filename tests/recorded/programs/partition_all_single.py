"""At parallelism 1 no partitioner changes the order."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    stream = env.from_collection([3, 1, 2])
    stream = stream.rebalance().map(lambda x: x).shuffle().map(lambda x: x).broadcast().map(lambda x: x)
    return stream.rescale().map(lambda x: x).forward().map(lambda x: x)
