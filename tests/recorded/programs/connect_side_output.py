"""Both sides of a co-process function emit to side outputs."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import CoProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


ODD = OutputTag("odd", Types.TUPLE([Types.STRING(), Types.INT()]))


class Both(CoProcessFunction):
    def process_element1(self, value, ctx: CoProcessFunction.Context):
        if value % 2:
            yield ODD, ("first", value)
        else:
            yield value

    def process_element2(self, value, ctx: CoProcessFunction.Context):
        if len(value) % 2:
            yield ODD, ("second", len(value))
        else:
            yield value


def build(env):
    main = env.from_collection([1, 2, 3, 4]).connect(env.from_collection(["a", "bb", "ccc"])).process(Both())
    return main.get_side_output(ODD)
