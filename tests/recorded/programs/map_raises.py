"""A Python exception in a function fails the job."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([1, 0]).map(lambda x: 1 // x)
