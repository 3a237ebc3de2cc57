"""The declared type of streams, as text."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


def build(env):
    untyped = env.from_collection([1])
    typed = env.from_collection([(1, "a")], Types.TUPLE([Types.INT(), Types.STRING()]))
    rows = env.from_collection([(1, "a")], Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]))
    return [str(stream.get_type()) for stream in (
        untyped, typed, rows, typed.map(lambda x: x), typed.map(lambda x: x, Types.LONG()),
        typed.filter(lambda x: True), typed.project(1), untyped.key_by(lambda x: x),
        typed.key_by(lambda x: x[0], Types.INT()), typed.key_by(lambda x: x[0]).sum(0), rows.key_by(lambda x: x[0]),
        typed.rebalance(), rows.union(rows))]
