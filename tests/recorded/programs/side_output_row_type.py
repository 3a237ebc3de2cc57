"""A list of types as a tag's type stands for a row."""

from pyflink.common import Row, Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


ROWS = OutputTag("rows", [Types.INT(), Types.STRING()])


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield ROWS, Row(value, "x" * value)


def build(env):
    rows = env.from_collection([1, 2, 3]).process(Split()).get_side_output(ROWS)
    return rows.map(lambda row: (row[0], row[1], str(row)))
