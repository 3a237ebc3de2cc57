"""execute_and_collect behind a custom partitioner."""

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False
QUIRK = "execute_and_collect does not tell the partitioner its number of targets; execute does."


def build(env):
    return env.from_collection([1, 2]).partition_custom(lambda key, n: key % n, lambda x: x).map(lambda x: x)
