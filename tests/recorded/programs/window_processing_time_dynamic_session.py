"""Processing-time sessions with a gap of each record's own."""

from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import CountTrigger, ProcessingTimeSessionWindows, SessionWindowTimeGapExtractor

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [element[1] for element in elements], context.current_watermark()


VALUES = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]


class Days(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[1] * 86_400_000


def build(env):
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(ProcessingTimeSessionWindows.with_dynamic_gap(Days()))
    return windows.trigger(CountTrigger.of(3)).process(Show())
