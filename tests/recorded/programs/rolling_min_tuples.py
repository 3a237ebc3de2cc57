"""min on tuples, one result for each record."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5), ("a", 9, 6), ("a", 9, 7)]
    return env.from_collection(values).key_by(lambda x: x[0]).min(1)
