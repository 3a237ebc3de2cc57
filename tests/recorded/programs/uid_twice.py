"""A uid may be used once."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return (env.from_collection([1, 2]).map(lambda x: x).uid("same")
            .rebalance().map(lambda x: x).uid("same"))
