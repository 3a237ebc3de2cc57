"""Untyped records travel pickled, so sets, dicts and nested containers stay what they are."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [{"a": [1, 2.5]}, {1, 2}, (1, ("x", None)), b"\x00\xff", 2 ** 100, float("nan"), -0.0, [], ()]
    return env.from_collection(values).map(lambda x: x).rebalance().map(lambda x: x)
