"""What a list state's get returned before an add, read after it."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The iterable shows the later addition; a copy should be read."


class Tell(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.STRING()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        found = self.state.get()
        self.state.add(value)
        yield list(found)


def build(env):
    return env.from_collection(["x", "y", "z"]).key_by(lambda x: 0).process(Tell())
