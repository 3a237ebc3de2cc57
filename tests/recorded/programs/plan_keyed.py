"""The execution plan of a keyed process with names and a uid."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = True
RESULT = "plan"


class Keep(KeyedProcessFunction):

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield value


def build(env):
    (env.from_collection([1, 2, 3]).name("numbers").map(lambda x: x, Types.INT()).name("same").set_parallelism(1)
     .key_by(lambda x: x, Types.INT()).process(Keep(), Types.INT()).uid("keep").rebalance().print().name("out"))
