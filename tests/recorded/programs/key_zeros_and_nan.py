"""0.0 and -0.0, and nan, as untyped keys, with another key in between."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    nan = float("nan")
    values = [(0.0, "+0"), (5.0, ""), (-0.0, "-0"), (5.0, ""), (0.0, "+0"), (nan, "nan"), (5.0, ""), (nan, "nan")]
    return env.from_collection(values).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
