"""A continuous trigger of processing time whose time has not come does not fire at the end."""

from pyflink.common import Time
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import ContinuousProcessingTimeTrigger, TumblingProcessingTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [element[1] for element in elements], context.current_watermark()


VALUES = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]


def build(env):
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(TumblingProcessingTimeWindows.of(Time.days(10000)))
    return windows.trigger(ContinuousProcessingTimeTrigger.of(Time.days(9000))).process(Show())
