"""The order of untyped float keys."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = [1.5, 0.0, -1.5, 2.0, -2.0, 100.0, -0.0, float("inf"), float("-inf"), 1e-9]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)
