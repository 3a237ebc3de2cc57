"""None inside an untyped tuple key."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("a", None, 1), ("a", None, 2)]
    return env.from_collection(values).key_by(lambda x: x[:2]).reduce(lambda a, b: (*a[:2], a[2] + b[2]))
