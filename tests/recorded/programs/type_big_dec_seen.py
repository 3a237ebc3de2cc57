"""BIG_DEC as the next function sees it behind an exchange."""

from decimal import Decimal

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = ["0", "1.10", "-1E+3", "1E-30", "12345678901234567890123.456"]
    return env.from_collection(values).map(Decimal, Types.BIG_DEC()).rebalance().map(lambda x: x)
