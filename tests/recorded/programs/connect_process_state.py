"""Without keys there is no keyed state in a co-process function."""

from pyflink.common import Types
from pyflink.datastream.functions import CoProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Both(CoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element1(self, value, ctx: CoProcessFunction.Context):
        self.count.update(value)
        yield value

    def process_element2(self, value, ctx: CoProcessFunction.Context):
        yield value


def build(env):
    return env.from_collection([1, 2]).connect(env.from_collection(["a"])).process(Both())
