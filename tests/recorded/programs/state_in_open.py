"""State cannot be read in open, where there is no key."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Early(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.early = state.value()

    def map(self, value):
        return self.early


def build(env):
    return env.from_collection(["a"]).key_by(lambda x: x).map(Early())
