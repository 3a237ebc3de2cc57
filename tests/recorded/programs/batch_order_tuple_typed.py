"""The order of keys of a TUPLE type."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = [("b", 1), ("a", 2), ("a", 1), ("aa", 1), ("a", -1), ("", 9), ("a", 300), ("c", 0)]
    keyed = env.from_collection(keys).key_by(lambda x: x, Types.TUPLE([Types.STRING(), Types.INT()]))
    return keyed.reduce(lambda a, b: a)
