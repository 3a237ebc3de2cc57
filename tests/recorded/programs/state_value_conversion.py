"""What a typed value state gives back right after an update."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Store(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.number = runtime_context.get_state(ValueStateDescriptor("number", Types.DOUBLE()))
        self.short = runtime_context.get_state(ValueStateDescriptor("short", Types.FLOAT()))

    def map(self, value):
        self.number.update(1)
        self.short.update(1.1)
        return self.number.value(), self.short.value()


def build(env):
    return env.from_collection(["a"]).key_by(lambda x: x).map(Store())
