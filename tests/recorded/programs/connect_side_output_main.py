"""What is tagged in a co-process function is not in its main output."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import CoProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


ODD = OutputTag("odd", Types.STRING())


class Both(CoProcessFunction):
    def process_element1(self, value, ctx: CoProcessFunction.Context):
        yield (ODD, str(value)) if value % 2 else value

    def process_element2(self, value, ctx: CoProcessFunction.Context):
        yield ODD, value
        yield len(value)


def build(env):
    main = env.from_collection([1, 2, 3, 4]).connect(env.from_collection(["a", "bb", "ccc"])).process(Both())
    sides = main.get_side_output(ODD)
    return main.map(lambda value: f"main {value}").union(sides.map(lambda value: f"side {value}"))
