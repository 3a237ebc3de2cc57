"""Dicts as untyped keys, also with their entries in another order."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [({"a": 1, "b": 2}, 1), ({}, 1), ({"a": 1, "b": 2}, 2), ({}, 1), ({"b": 2, "a": 1}, 4)]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
