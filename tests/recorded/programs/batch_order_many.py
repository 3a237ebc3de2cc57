"""The order of more str keys than fit one length: user_0 to user_29."""

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    keys = [f"user_{i * 7 % 30}" for i in range(30)]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)
