"""Tuple keys of a declared type."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Tell(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.total.update((self.total.value() or 0) + value[2])
        yield ctx.get_current_key(), self.total.value()


def build(env):
    values = [("a", 1, 1), ("b", 1, 2), ("a", 1, 3), ("a", 2, 4)]
    keyed = env.from_collection(values).key_by(lambda x: (x[0], x[1]), Types.TUPLE([Types.STRING(), Types.INT()]))
    return keyed.process(Tell())
