"""BIG_DEC with a positive exponent, collected."""

from decimal import Decimal

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The exponent is written out, though not between functions."


def build(env):
    return env.from_collection(["-1E+3"]).map(Decimal, Types.BIG_DEC())
