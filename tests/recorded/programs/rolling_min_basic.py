"""min and max_by of plain values."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = env.from_collection([3, 1, 4, 1, 5, 9, 2])
    return values.key_by(lambda x: x % 2).min().key_by(lambda x: x % 2).max_by()
