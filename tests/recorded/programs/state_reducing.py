"""Reducing state: absent, added to, cleared."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ReducingStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        descriptor = ReducingStateDescriptor("state", lambda a, b: a * 10 + b, Types.INT())
        self.state = runtime_context.get_reducing_state(descriptor)

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        before = self.state.get()
        if value is None:
            self.state.clear()
        else:
            self.state.add(value)
        yield before, value, self.state.get()


def build(env):
    return env.from_collection([1, 2, 3, None, 4, None, None, 5]).key_by(lambda x: 0).process(Steps())
