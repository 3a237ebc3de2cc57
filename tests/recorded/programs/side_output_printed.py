"""Main output and side output, each with a sink of its own."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False
RESULT = "stdout"


ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield ODD, value
        else:
            yield value


def build(env):
    split = env.from_collection([1, 2, 3, 4]).process(Split(), Types.INT())
    split.print("even")
    split.get_side_output(ODD).print("odd")
