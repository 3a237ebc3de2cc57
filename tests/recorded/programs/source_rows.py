"""A collection of ROW_NAMED given as tuples, lists, rows and dicts."""

from pyflink.common import Row, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    values = [(1, "tuple"), [2, "list"], Row(3, "row"), Row(id=4, name="named row"), {"id": 5, "name": "dict"}]
    return env.from_collection(values, types).map(lambda row: row)
