"""The truth of what a list state's get returns, and whether it can be read twice."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "What get returns is true also when it is empty."


class Tell(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.STRING()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        found = self.state.get()
        yield bool(found), list(found), list(found)
        self.state.add(value)


def build(env):
    return env.from_collection(["x", "y", "z"]).key_by(lambda x: 0).process(Tell())
