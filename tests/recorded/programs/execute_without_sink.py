"""A job of operators without a sink."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    env.from_collection([1]).map(lambda x: x)
