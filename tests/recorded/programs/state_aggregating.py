"""Aggregating state: absent, added to, cleared; its result differs from its accumulator."""

from pyflink.common import Types
from pyflink.datastream.functions import AggregateFunction, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import AggregatingStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Average(AggregateFunction):

    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + 1, accumulator[1] + value

    def get_result(self, accumulator):
        return accumulator[1] / accumulator[0]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Steps(KeyedProcessFunction):

    def open(self, runtime_context: RuntimeContext):
        descriptor = AggregatingStateDescriptor("state", Average(), Types.TUPLE([Types.INT(), Types.INT()]))
        self.state = runtime_context.get_aggregating_state(descriptor)

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        before = self.state.get()
        if value is None:
            self.state.clear()
        else:
            self.state.add(value)
        yield before, value, self.state.get()


def build(env):
    return env.from_collection([1, 2, 6, None, 4, None, None, 5]).key_by(lambda x: 0).process(Steps())
