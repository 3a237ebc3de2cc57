"""None cannot leave a chain of functions."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "Untyped records are pickled, yet None alone is sent as no bytes at all, which the JVM side cannot read."


def build(env):
    return env.from_collection([1, 2]).map(lambda x: None).rebalance().map(repr)
