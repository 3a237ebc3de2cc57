"""A side output is keyed and summed."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


WORDS = OutputTag("words", Types.TUPLE([Types.STRING(), Types.INT()]))


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        for word in value.split():
            yield WORDS, (word, 1)
        yield len(value)


def build(env):
    words = env.from_collection(["to be or", "not to be"]).process(Split()).get_side_output(WORDS)
    return words.key_by(lambda value: value[0]).sum(1)
