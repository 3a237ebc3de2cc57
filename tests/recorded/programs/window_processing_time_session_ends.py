"""A processing-time session that is open at the end does not fire."""

from pyflink.common import Time
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import ProcessingTimeSessionWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [element[1] for element in elements], context.current_watermark()


VALUES = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]


def build(env):
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    return keyed.window(ProcessingTimeSessionWindows.with_gap(Time.days(1))).process(Show())
