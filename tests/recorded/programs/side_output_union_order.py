"""As above with an unnamed type on both tags and the main stream in the union."""

from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


ODD = OutputTag("odd")


class Split(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value
        if value % 2:
            yield ODD, -value


def build(env):
    main = env.from_collection([1, 2, 3, 4]).process(Split())
    return main.union(main.get_side_output(ODD))
