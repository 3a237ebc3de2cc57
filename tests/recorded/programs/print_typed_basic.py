"""print of typed plain values."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    values = [1.0, 0.1, 1e7, 12345678.0, 1e-3, 1e-4, -0.0, float("nan"), float("inf")]
    env.from_collection(values, Types.DOUBLE()).print()
