"""A key selector that is neither a KeySelector nor callable is refused."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([(1, 2)]).key_by(0).map(lambda x: x)
