"""Unions of unions hold every record as often as it comes in."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    a, b, c = (env.from_collection([name + "1", name + "2"]) for name in "abc")
    return a.union(b).union(c, a).union(b.union(c)).map(lambda value: value)
