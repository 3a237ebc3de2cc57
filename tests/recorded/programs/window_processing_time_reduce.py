"""Processing-time windows that reduce and fire by count."""

from pyflink.common import Time
from pyflink.datastream.window import CountTrigger, TumblingProcessingTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


VALUES = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]


def build(env):
    keyed = env.from_collection(VALUES).key_by(lambda value: value[0])
    windows = keyed.window(TumblingProcessingTimeWindows.of(Time.days(10000))).trigger(CountTrigger.of(2))
    return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))
