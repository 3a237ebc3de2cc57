"""The order of untyped keys of several types."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = ["a", 1, 1.0, True, False, (1,), b"a", "b", 0, -1, "", 300]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)
