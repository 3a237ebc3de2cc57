"""Assigned timestamps are seen by the context, also behind further operators."""

from pyflink.common import WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream.functions import ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Field(TimestampAssigner):

    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Times(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value[0], ctx.timestamp()


def build(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Field())
    return (env.from_collection([("a", 5), ("b", 7), ("c", -1)])
            .assign_timestamps_and_watermarks(strategy)
            .map(lambda pair: pair)
            .flat_map(lambda pair: [pair, pair])
            .process(Times()))
