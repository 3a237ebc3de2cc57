"""sum of a number and a string."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([("a", 1), ("a", "y")]).key_by(lambda x: x[0]).sum(1)
