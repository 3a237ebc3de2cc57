"""The order of untyped tuple keys."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = [("b", 1), ("a", 2), ("a", 1), ("aa", 1), ("a", -1), ("", 9), ("a", 300), ("a",), ("a", 1, 1)]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)
