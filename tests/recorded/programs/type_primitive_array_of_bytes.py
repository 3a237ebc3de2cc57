"""PRIMITIVE_ARRAY of BYTE holds bytes."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return (env.from_collection([1]).map(lambda x: b"\x01\xff", Types.PRIMITIVE_ARRAY(Types.BYTE()))
            .rebalance().map(lambda x: x))
