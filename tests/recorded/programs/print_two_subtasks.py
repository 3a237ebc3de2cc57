"""print at parallelism 2 names the subtask."""

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False
RESULT = "stdout"


def build(env):
    env.from_collection([0, 1]).broadcast().map(lambda x: x).print()
