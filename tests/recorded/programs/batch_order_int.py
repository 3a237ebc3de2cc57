"""The order of untyped int keys."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = [5, 1, 0, -1, 10, 300, -300, 255, 256, 65535, 65536, 2 ** 31, -2 ** 31, 2 ** 40, -2 ** 40, 2 ** 63, 2, -2]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)
