"""None as an untyped key of the very first record, and again later."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [(None, 1), ("x", 1), (None, 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
