"""The execution plan shows how streams are partitioned."""

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = True
RESULT = "plan"


def build(env):
    stream = env.from_collection([1, 2, 3]).shuffle().map(lambda x: x).broadcast().map(lambda x: x)
    stream = stream.rescale().map(lambda x: x).rebalance().map(lambda x: x).forward().map(lambda x: x)
    stream.partition_custom(lambda key, n: 0, lambda x: x).map(lambda x: x).set_parallelism(1).print()
