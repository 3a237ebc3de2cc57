"""1, 1.0 and True as untyped keys, one directly after the other."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "A key that compares equal to the key of the record just before is taken for that key; see the untyped program."


def build(env):
    values = [(1, "int"), (1.0, "float"), (True, "bool"), (1, "int again"), (True, "bool again")]
    return env.from_collection(values).key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], a[1] + "+" + b[1]))
