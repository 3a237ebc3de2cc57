"""Two keyed operators one after the other."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("a", 1), ("b", 2), ("a", 3), ("c", 4)]
    counted = env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    return counted.key_by(lambda x: x[1] % 2).reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]))
