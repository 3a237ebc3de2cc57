"""A position other than 0 on plain values, two records of one key."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([3, 1]).key_by(lambda x: 0).sum(1)
