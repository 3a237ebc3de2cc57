"""execute_and_collect on an untyped keyed stream gives rows of key and value."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "Both fields are collected as their pickled bytes."


def build(env):
    return env.from_collection([("a", 1), ("b", 2)]).key_by(lambda x: x[0])
