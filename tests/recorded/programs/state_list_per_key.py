"""List states of different keys are apart."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Store(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_list_state(ListStateDescriptor("state", Types.INT()))

    def map(self, value):
        self.state.add(value[1])
        return value[0], list(self.state.get())


def build(env):
    values = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)]
    return env.from_collection(values).key_by(lambda x: x[0]).map(Store())
