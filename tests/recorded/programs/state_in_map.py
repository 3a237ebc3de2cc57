"""Value state in a MapFunction."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Previous(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.previous = runtime_context.get_state(ValueStateDescriptor("previous", Types.PICKLED_BYTE_ARRAY()))

    def map(self, value):
        before = self.previous.value()
        self.previous.update(value)
        return before, value


def build(env):
    return env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda x: x[0]).map(Previous())
