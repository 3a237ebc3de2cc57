"""print of a keyed stream shows the values; its identifier is lost."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    env.from_collection([("a", 1)]).key_by(lambda x: x[0]).print("id")
