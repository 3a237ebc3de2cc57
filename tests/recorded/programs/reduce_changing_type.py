"""reduce on an untyped stream may change the type of its result."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [1, 2, 3]
    keyed = env.from_collection(values).key_by(lambda x: 0)
    return keyed.reduce(lambda a, b: [a, b] if isinstance(a, int) else [*a, b])
