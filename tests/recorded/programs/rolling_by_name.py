"""Aggregates of named rows by field name."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW_NAMED(["key", "value", "at"], [Types.STRING(), Types.INT(), Types.INT()])
    values = [("a", 3, 1), ("b", 9, 2), ("a", 1, 3), ("a", 2, 4)]
    rows = env.from_collection(values, types)
    summed = rows.key_by(lambda x: x["key"]).sum("value")
    return summed.key_by(lambda x: x.key).min_by("at")
