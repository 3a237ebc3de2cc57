"""Two tags of one id are one side output."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


HERE = OutputTag("odd", Types.INT())
THERE = OutputTag("odd", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield HERE, value
        else:
            yield value


def build(env):
    return env.from_collection([1, 2, 3, 4]).process(Split()).get_side_output(THERE)
