"""sum of a field of dict records."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([{"k": "a", "v": 1}, {"k": "a", "v": 2}]).key_by(lambda x: x["k"]).sum("v")
