"""Two rolling aggregates in sequence in BATCH mode."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    values = [("a", 1), ("b", 2), ("a", 3), ("c", 4)]
    summed = env.from_collection(values).key_by(lambda x: x[0]).sum(1)
    return summed.key_by(lambda x: x[1] % 2).reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]))
