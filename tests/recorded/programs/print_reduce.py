"""print behind a rolling aggregate."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda x: x[0]).sum(1).print()
