"""Results for a tag that nobody reads, while another tag is read, are dropped."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


READ = OutputTag("read", Types.INT())
UNREAD = OutputTag("unread", Types.INT())


class Split(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield UNREAD, value
        yield READ, value
        yield value


def build(env):
    main = env.from_collection([1, 2]).process(Split())
    main.get_side_output(READ)
    return main
