"""A side output is a stream like any other, with side outputs of its own."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


ODD = OutputTag("odd", Types.INT())
LARGE = OutputTag("large", Types.INT())


class Odd(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield ODD, value
        else:
            yield value


class Large(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        if value > 4:
            yield LARGE, value
        else:
            yield value


def build(env):
    odd = env.from_collection(list(range(10))).process(Odd()).get_side_output(ODD)
    return odd.map(lambda value: value + 2, Types.INT()).process(Large()).get_side_output(LARGE)
