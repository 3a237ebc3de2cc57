"""reduce gives the first record unchanged and then each new result."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
