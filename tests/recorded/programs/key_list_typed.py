"""Lists as keys of type LIST, with another key in between."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [([1], 1), ([2], 1), ([1], 2)]
    keyed = env.from_collection(values).key_by(lambda x: x[0], Types.LIST(Types.INT()))
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))
