"""Without keys BATCH mode keeps the order."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    return env.from_collection([3, 1, 2]).map(lambda x: x * 2).rebalance().filter(lambda x: x != 2)
