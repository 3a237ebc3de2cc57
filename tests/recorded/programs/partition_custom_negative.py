"""A partitioner's result must be a target."""

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    env.from_collection([1, 2, 3]).partition_custom(lambda key, n: -1, lambda x: x).map(lambda x: x).print()
