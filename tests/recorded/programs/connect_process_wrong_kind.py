"""Connected streams take co-process functions, and no others."""

from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Alone(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value


def build(env):
    return env.from_collection([1]).connect(env.from_collection(["a"])).process(Alone())
