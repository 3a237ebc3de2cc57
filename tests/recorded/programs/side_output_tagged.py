"""The side output of a tag holds the tagged results."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


ODD = OutputTag("odd", Types.INT())
BIG = OutputTag("big")


class Split(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value
        if value % 2:
            yield ODD, value
        if value > 2:
            yield BIG, ("big", value)


def build(env):
    main = env.from_collection([1, 2, 3, 4]).process(Split())
    return main.get_side_output(ODD).map(lambda x: ("odd", x)).union(main.get_side_output(BIG))
