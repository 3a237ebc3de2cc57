"""print with an identifier."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    env.from_collection([1, 2]).map(lambda x: x).print("id")
