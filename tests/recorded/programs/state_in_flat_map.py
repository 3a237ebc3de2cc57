"""Value state in a FlatMapFunction."""

from pyflink.common import Types
from pyflink.datastream.functions import FlatMapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Repeat(FlatMapFunction):

    def open(self, runtime_context: RuntimeContext):
        self.times = runtime_context.get_state(ValueStateDescriptor("times", Types.INT()))

    def flat_map(self, value):
        times = (self.times.value() or 0) + 1
        self.times.update(times)
        for n in range(times):
            yield value, n


def build(env):
    return env.from_collection(["a", "b", "a"]).key_by(lambda x: x).flat_map(Repeat())
