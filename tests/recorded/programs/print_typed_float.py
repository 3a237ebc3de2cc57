"""print of FLOAT values."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    env.from_collection([1.1, 0.1, 1e7, 16777217.0, 1e-4, 3.4e38], Types.FLOAT()).print()
