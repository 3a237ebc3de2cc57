"""Late records of windows that reduce."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.window import EventTimeTrigger, TimeWindow, TimeWindowSerializer, WindowAssigner

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def timed(env, values):
    return env.from_collection(values).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )


LOWEST = -(2**63)
LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())


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


def build(env):
    stream = timed(env, [("a", LOWEST, 1), ("b", 4, 2), ("a", LOWEST, 3), ("a", 9, 4), ("b", 5, 5), ("a", LOWEST, 6)])
    windows = stream.key_by(lambda v: v[0]).window(AtTheBeginning()).side_output_late_data(LATE)
    return windows.reduce(lambda a, b: (a[0], a[1], a[2] + b[2])).get_side_output(LATE)
