"""The order of untyped str keys of several lengths."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = ["b", "a", "ccc", "aa", "", "B", "bb", "ab", "é", "z", "aaa", "abcdefghij", "你"]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)
