"""State needs a keyed stream."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Stateful(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value):
        return value


def build(env):
    return env.from_collection([1]).map(Stateful())
