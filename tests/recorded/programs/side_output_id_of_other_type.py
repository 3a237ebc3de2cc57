"""Two tags of one id and of different types."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


NUMBERS = OutputTag("odd", Types.INT())
WORDS = OutputTag("odd", Types.STRING())


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield NUMBERS, value


def build(env):
    split = env.from_collection([1, 2, 3, 4]).process(Split())
    return split.get_side_output(NUMBERS).map(str).union(split.get_side_output(WORDS).map(str))
