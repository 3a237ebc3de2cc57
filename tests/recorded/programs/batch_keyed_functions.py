"""map, filter and flat_map with state on keyed streams in BATCH mode."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


class Count(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def map(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return value, self.count.value()


def build(env):
    return env.from_collection(list("cabcab")).key_by(lambda x: x).map(Count()).filter(lambda pair: pair[1] > 1)
