"""A value that is not of the state's type."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Store(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.INT()))

    def map(self, value):
        self.state.update("text")
        return self.state.value()


def build(env):
    return env.from_collection(["a", "a"]).key_by(lambda x: x).map(Store())
