"""A side output read twice gives its records twice."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield ODD, value


def build(env):
    split = env.from_collection([1, 2, 3, 4]).process(Split())
    first, second = split.get_side_output(ODD), split.get_side_output(ODD)
    return first.map(lambda value: ("first", value)).union(second.map(lambda value: ("second", value)))
