"""One name for two types of value state."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Twice(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.first = runtime_context.get_state(ValueStateDescriptor("state", Types.LONG()))
        self.second = runtime_context.get_state(ValueStateDescriptor("state", Types.STRING()))

    def map(self, value):
        return value


def build(env):
    return env.from_collection(["a"]).key_by(lambda x: x).map(Twice())
