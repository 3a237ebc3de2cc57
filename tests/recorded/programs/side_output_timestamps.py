"""Records of a side output have the time of the record that made them."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag
from pyflink.datastream.functions import ProcessFunction

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


LATER = OutputTag("later", Types.STRING())


class Split(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield LATER, value[0]


class Times(ProcessFunction):
    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value, ctx.timestamp()


def build(env):
    stream = timed(env, [("a", 5), ("b", 3), ("c", 8)])
    return stream.process(Split()).get_side_output(LATER).process(Times())
