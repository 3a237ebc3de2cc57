"""Records without timestamps keep their order within a key."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


class Tell(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value(), value[1]


def build(env):
    values = [("b", 9), ("a", 3), ("b", 1), ("a", 7), ("a", 1), ("b", 5), ("a", 2)]
    return env.from_collection(values).key_by(lambda x: x[0]).process(Tell())
