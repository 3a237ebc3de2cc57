"""Tagged results of a function of which no side output is read."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "Without any get_side_output the pair of tag and value is a record of the main stream."


ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield ODD, value
        else:
            yield value


def build(env):
    return env.from_collection([1, 2, 3, 4]).process(Split()).map(lambda x: x if isinstance(x, int) else (len(x), x[1]))
