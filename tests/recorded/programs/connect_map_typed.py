"""A declared type of a co-map's results."""

from pyflink.common import Row, Types
from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoMapFunction):
    def map1(self, value):
        return Row(value, str(value))

    def map2(self, value):
        return Row(len(value), value)


def build(env):
    connected = env.from_collection([1, 2, 3]).connect(env.from_collection(["xx", "y"]))
    rows = connected.map(Both(), Types.ROW_NAMED(["number", "text"], [Types.INT(), Types.STRING()]))
    return rows.rebalance().map(lambda row: (row.number, row.text, str(row)))
