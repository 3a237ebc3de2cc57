"""key_by of a keyed stream keys the original values anew."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("a", 1), ("b", 1), ("a", 2)]
    keyed = env.from_collection(values).key_by(lambda x: x[0]).key_by(lambda x: x[1])
    return keyed.reduce(lambda a, b: (a[0] + b[0], a[1]))
