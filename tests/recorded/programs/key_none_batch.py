"""None as an untyped key in BATCH mode."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    values = [(None, 1), ("x", 1), (None, 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
