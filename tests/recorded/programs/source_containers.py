"""A collection of lists and maps."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.TUPLE([Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.DOUBLE()),
                         Types.BASIC_ARRAY(Types.STRING()), Types.PRIMITIVE_ARRAY(Types.INT())])
    return env.from_collection([([1, 2], {"a": 0.5}, ["x"], [3])], types).map(lambda x: x)
