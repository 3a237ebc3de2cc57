"""Records of windows that the watermark has passed are dropped."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import EventTimeTrigger, TimeWindow, TimeWindowSerializer, WindowAssigner

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


LOWEST = -(2**63)


class AtTheBeginning(WindowAssigner):
    """Odd numbers go to the first millisecond there is, which even the first watermark has passed."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(LOWEST, LOWEST + 1) if element[2] % 2 else TimeWindow(0, 10)]

    def get_default_trigger(self, env):
        return EventTimeTrigger()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().end, [e[2] for e in elements], context.current_watermark()


def build(env):
    values = [("a", 1, 1), ("a", 4, 2), ("a", 3, 3), ("a", 9, 4), ("a", 5, 5), ("a", 6, 6)]
    stream = env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return stream.key_by(lambda v: v[0]).window(AtTheBeginning()).process(Show())
