"""The program whose unaligned checkpoint is kept: records of three splits are counted and summed by key.

It must stay as it is: the checkpoint is restored into it.
"""

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.testing.scripted import ScriptedSource, split_evenly

KEYS = ("a", 7, ("t", 1.5), b"k", "", -1)
RECORDS = [(KEYS[n * n % 6], n) for n in range(120)]


class Sum(KeyedProcessFunction):
    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        count, total = self.sum.value() or (0, 0)
        self.sum.update((count + 1, total + value[1]))
        yield f"{value[0]!r} {count + 1}"


def draw(env):
    """Return the count of every record among those of its key, with the key."""
    source = ScriptedSource(split_evenly(RECORDS, 3), [2])
    records = env.from_source(source, WatermarkStrategy.no_watermarks(), "records").uid("records")
    spread = records.rebalance().map(lambda record: record).uid("spread")
    return spread.key_by(lambda record: record[0]).process(Sum()).uid("sum")
