"""shuffle keeps every record once."""

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


def build(env):
    return env.from_collection(list(range(20))).shuffle().map(lambda x: x)
