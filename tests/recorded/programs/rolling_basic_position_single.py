"""A position other than 0 on plain values, while each key has one record."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([3, 1]).key_by(lambda x: x).sum(1)
