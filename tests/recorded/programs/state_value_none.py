"""Updating a value state with None."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.STRING()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        before = self.state.value()
        self.state.update(value)
        yield before, value, self.state.value()


def build(env):
    return env.from_collection(["x", None, "y"]).key_by(lambda x: 0).process(Steps())
