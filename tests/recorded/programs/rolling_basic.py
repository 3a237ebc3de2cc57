"""Aggregates of plain values use position 0."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = env.from_collection([3, 1, 4, 1, 5, 9, 2])
    return values.key_by(lambda x: x % 2).sum().key_by(lambda x: 0).max(0)
