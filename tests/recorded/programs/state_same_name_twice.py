"""Two descriptors of one name give one state."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Twice(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.first = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.second = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value):
        self.first.update((self.second.value() or 0) + 1)
        return value, self.first.value(), self.second.value()


def build(env):
    return env.from_collection(["a", "a"]).key_by(lambda x: x).map(Twice())
