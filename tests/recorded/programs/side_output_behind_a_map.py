"""A side output is asked of the function that emits it: behind a map there is none."""

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
    split = env.from_collection([1, 2, 3, 4]).process(Split())
    split.get_side_output(ODD)
    return split.map(lambda value: value).get_side_output(ODD)
