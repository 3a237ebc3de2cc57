"""The order of keys of type STRING."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = ["b", "a", "ccc", "aa", "", "B", "bb", "ab", "é", "z", "aaa", "abcdefghij", "你", "😀"]
    return env.from_collection(keys).key_by(lambda x: x, Types.STRING()).reduce(lambda a, b: a)
