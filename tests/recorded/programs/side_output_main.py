"""A tagged result goes to the side output and not to the main stream."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        if value % 2:
            yield ODD, value
        else:
            yield value


def build(env):
    main = env.from_collection([1, 2, 3, 4]).process(Split())
    main.get_side_output(ODD)
    return main
