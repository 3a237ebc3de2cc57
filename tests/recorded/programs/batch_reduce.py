"""reduce in BATCH mode: the last result of each key."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    values = [("b", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] * 10 + b[1]))
