"""A collection of decimals."""

from decimal import Decimal

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [(Decimal("1.10"), 1), (Decimal("-0.001"), 2)]
    return env.from_collection(values, Types.TUPLE([Types.BIG_DEC(), Types.INT()])).map(lambda x: x)
