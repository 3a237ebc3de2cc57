"""sum of strings."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([("a", "x"), ("a", "y"), ("a", "z")]).key_by(lambda x: x[0]).sum(1)
