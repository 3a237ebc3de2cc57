"""0.0 and -0.0, and nan, as keys of type DOUBLE, with another key in between."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    nan = float("nan")
    values = [(0.0, "+0"), (5.0, ""), (-0.0, "-0"), (5.0, ""), (0.0, "+0"), (nan, "nan"), (5.0, ""), (nan, "nan")]
    keyed = env.from_collection(values).key_by(lambda pair: pair[0], Types.DOUBLE())
    return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))
