"""A value state of a tuple type."""

from pyflink.common import Types
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Average(MapFunction):

    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("sum", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.sum = runtime_context.get_state(descriptor)

    def map(self, value):
        count, total = self.sum.value() or (0, 0)
        self.sum.update((count + 1, total + value[1]))
        return value[0], self.sum.value()


def build(env):
    return env.from_collection([("a", 1), ("a", 3), ("b", 5), ("a", 2)]).key_by(lambda x: x[0]).map(Average())
