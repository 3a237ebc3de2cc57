"""A state may be acquired while a record is processed."""

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Late(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.context = runtime_context

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        count = self.context.get_state(ValueStateDescriptor("count", Types.LONG()))
        count.update((count.value() or 0) + 1)
        yield value, count.value()


def build(env):
    return env.from_collection(["a", "b", "a"]).key_by(lambda x: x).process(Late())
