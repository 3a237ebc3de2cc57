"""print directly behind an untyped collection."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    env.from_collection([1, "text", ("a", 1), None]).print()
