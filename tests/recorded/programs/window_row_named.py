"""Windows over named rows: the key, the reduce and the result are rows' fields."""

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.window import TumblingEventTimeWindows

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


TYPE = Types.ROW_NAMED(["word", "at", "n"], [Types.STRING(), Types.LONG(), Types.INT()])


def build(env):
    values = [Row("a", 3, 1), Row("a", 12, 4), Row("a", 9, 32), Row("b", 21, 16), Row("b", 28, 64)]
    stream = env.from_collection(values, TYPE).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    )
    return (
        stream.key_by(lambda r: r.word, Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda x, y: Row(word=x.word, at=max(x.at, y.at), n=x.n + y.n), output_type=TYPE)
    )
