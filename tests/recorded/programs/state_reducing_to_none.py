"""A reduce function that gives None inside a reducing state."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ReducingStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        descriptor = ReducingStateDescriptor("state", lambda a, b: None if b == 2 else a + b, Types.INT())
        self.state = runtime_context.get_reducing_state(descriptor)

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.state.add(value)
        yield value, self.state.get()


def build(env):
    return env.from_collection([1, 2, 3, 4]).key_by(lambda x: 0).process(Steps())
