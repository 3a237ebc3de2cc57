"""The execution plan of a job without a sink."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "plan"


def build(env):
    env.from_collection([1]).map(lambda x: x)
