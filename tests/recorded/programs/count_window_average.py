"""The average of every two values of a key, as in Flink's first example of keyed state."""

from pyflink.common import Types
from pyflink.datastream.functions import FlatMapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class CountWindowAverage(FlatMapFunction):

    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("average", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.sum = runtime_context.get_state(descriptor)

    def flat_map(self, value):
        count, total = self.sum.value() or (0, 0)
        count, total = count + 1, total + value[1]
        if count >= 2:
            self.sum.clear()
            yield value[0], total // count
        else:
            self.sum.update((count, total))


def build(env):
    values = env.from_collection([(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)])
    return values.key_by(lambda row: row[0]).flat_map(CountWindowAverage())
