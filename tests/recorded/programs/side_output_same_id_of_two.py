"""Two functions, one behind the other, use one id: each has its own side output."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


TAG = OutputTag("tag", Types.STRING())


class Tagged(ProcessFunction):
    def __init__(self, name):
        self.name = name

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield TAG, f"{self.name} {value}"
        yield value


def build(env):
    first = env.from_collection([1, 2]).process(Tagged("first"))
    second = first.process(Tagged("second"))
    return first.get_side_output(TAG).union(second.get_side_output(TAG))
