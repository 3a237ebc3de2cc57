"""The current key of an untyped stream is the object the selector gave, None and tuples too."""

from pyflink.datastream.functions import KeyedProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Tell(KeyedProcessFunction):

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield (ctx.get_current_key(),)


def build(env):
    return env.from_collection(["a", 1, (1, "b"), True, 2.0]).key_by(lambda x: x).process(Tell())
