"""Processing-time windows over all records fire by count."""

from pyflink.common import Time
from pyflink.datastream.functions import ProcessAllWindowFunction
from pyflink.datastream.window import CountTrigger, TumblingProcessingTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Show(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield [element[1] for element in elements]


VALUES = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]


def build(env):
    windows = env.from_collection(VALUES).window_all(TumblingProcessingTimeWindows.of(Time.days(10000)))
    return windows.trigger(CountTrigger.of(3)).process(Show())
