"""The number of targets a partitioner is told, before an operator of another parallelism."""

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    def partition(key, targets):
        raise ValueError(f"{targets} targets")

    env.from_collection([1]).partition_custom(partition, lambda x: x).map(lambda x: x).set_parallelism(1).print()
