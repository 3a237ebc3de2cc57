"""A position counted from the end."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([("a", 1), ("a", 2)]).key_by(lambda x: x[0]).sum(-1)
