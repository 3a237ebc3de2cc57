"""In a batch job open processing-time windows fire at the end of their key."""

from pyflink.common import Time, Types
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import TumblingProcessingTimeWindows

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True
QUIRK = "PyFlink has dropped the contents of the windows when their timers fire, and fails or gives too little."


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [element[1] for element in elements], context.current_watermark()


VALUES = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]


def build(env):
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0], Types.STRING())
    return keyed.window(TumblingProcessingTimeWindows.of(Time.days(10000))).process(Show())
