"""Arrays as the next function sees them behind an exchange."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.TUPLE([Types.PRIMITIVE_ARRAY(Types.INT()), Types.PRIMITIVE_ARRAY(Types.DOUBLE()),
                         Types.BASIC_ARRAY(Types.STRING()), Types.OBJECT_ARRAY(Types.TUPLE([Types.INT()]))])
    return (env.from_collection([1]).map(lambda x: ([1, 2], [0.5], ["a", "b"], [(1,), (2,)]), types)
            .rebalance().map(lambda x: x))
