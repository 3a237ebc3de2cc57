"""None added to a list state."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Store(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.STRING()))

    def map(self, value):
        self.state.add(value)
        return list(self.state.get())


def build(env):
    return env.from_collection(["x", None, "y"]).key_by(lambda x: 0).map(Store())
