"""min of values without an order."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([("a", 1), ("a", None)]).key_by(lambda x: x[0]).min(1)
