"""A side output of two subtasks holds the records of both."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield ODD, value
        else:
            yield value


def build(env):
    split = env.from_collection(list(range(9))).rebalance().process(Split())
    return split.get_side_output(ODD).map(lambda value: -value).union(split)
