"""min_by on tuples in BATCH mode: the last result of each key."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).min_by(1)
