"""Two consumers of one stream see all of its records each."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


def build(env):
    numbers = env.from_collection([1, 2, 3]).map(lambda x: x * 10)
    return numbers.map(lambda x: ("left", x)).union(numbers.map(lambda x: ("right", x)))
