"""Side outputs of a keyed function."""

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


EVERY_SECOND = OutputTag("second", Types.TUPLE([Types.STRING(), Types.INT()]))


class Counting(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value
        if count % 2 == 0:
            yield EVERY_SECOND, (ctx.get_current_key(), count)


def build(env):
    main = env.from_collection(list("abaabb")).key_by(lambda x: x).process(Counting())
    return main.get_side_output(EVERY_SECOND)
