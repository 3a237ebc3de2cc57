"""Several side outputs, of none, one and many records per record."""

from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


NEVER, ONCE, OFTEN = OutputTag("never"), OutputTag("once"), OutputTag("often")


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield ONCE, ("once", value)
        for n in range(value):
            yield OFTEN, ("often", value, n)


def build(env):
    main = env.from_collection([1, 2, 3]).process(Split())
    return main.union(main.get_side_output(NEVER), main.get_side_output(ONCE), main.get_side_output(OFTEN))
