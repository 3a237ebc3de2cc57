"""An accumulator that is changed in place."""

from pyflink.common import Types
from pyflink.datastream.functions import AggregateFunction, MapFunction, RuntimeContext
from pyflink.datastream.state import AggregatingStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Collect(AggregateFunction):

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator):
        return list(accumulator)

    def merge(self, a, b):
        return a + b


class Steps(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        descriptor = AggregatingStateDescriptor("state", Collect(), Types.PICKLED_BYTE_ARRAY())
        self.state = runtime_context.get_aggregating_state(descriptor)

    def map(self, value):
        self.state.add(value[1])
        return value[0], self.state.get()


def build(env):
    values = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)]
    return env.from_collection(values).key_by(lambda x: x[0]).map(Steps())
