"""None as an untyped key, with another key in between."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("x", 1), (None, 1), ("x", 1), (None, 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
