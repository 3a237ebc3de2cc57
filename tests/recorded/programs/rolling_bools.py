"""sum of bools."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([("a", True), ("a", True), ("a", False)]).key_by(lambda x: x[0]).sum(1)
