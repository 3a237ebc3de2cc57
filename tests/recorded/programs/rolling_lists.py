"""sum of a field of list records."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([["a", 1], ["a", 2], ["a", 3]]).key_by(lambda x: x[0]).sum(1)
