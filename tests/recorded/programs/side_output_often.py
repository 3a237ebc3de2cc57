"""The order of a side output is the order in which it was emitted."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


OFTEN = OutputTag("often", Types.TUPLE([Types.INT(), Types.INT()]))


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        for n in range(value):
            yield OFTEN, (value, n)
            yield value


def build(env):
    return env.from_collection([1, 3, 2]).process(Split()).get_side_output(OFTEN)
