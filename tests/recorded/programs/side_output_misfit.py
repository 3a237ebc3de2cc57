"""A side result that is not of its tag's type."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


NUMBERS = OutputTag("numbers", Types.INT())


class Split(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield NUMBERS, "not a number"


def build(env):
    return env.from_collection([1, 2]).process(Split()).get_side_output(NUMBERS)
