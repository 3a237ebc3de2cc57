"""Tumbling, sliding, session and count windows over one stream; each is a job of its own."""

import argparse
import sys
from collections.abc import Iterable

import pyflink.datastream.window as w
from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import CountWindow, TimeWindow


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Count(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(self, key: str, context: ProcessWindowFunction.Context[TimeWindow],
                elements: Iterable[tuple]) -> Iterable[tuple]:
        return [(key, context.window().start, context.window().end, len(list(elements)))]


class Sum(WindowFunction[tuple, tuple, str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs: Iterable[tuple]):
        return [(key, sum(value[1] for value in inputs))]


class Gap(w.SessionWindowTimeGapExtractor):
    def extract(self, element: tuple) -> int:
        return element[1]


RESULT = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()])
KINDS = {
    "tumbling": w.TumblingEventTimeWindows.of(Time.milliseconds(5)),
    "sliding": w.SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(2)),
    "session": w.EventTimeSessionWindows.with_gap(Time.milliseconds(5)),
    "dynamic": w.EventTimeSessionWindows.with_dynamic_gap(Gap()),
}

if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--kind', action='append', required=True)
    kinds = parser.parse_args(sys.argv[1:]).kind
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for kind in kinds:
        print("windows:", kind)
        values = env.from_collection(
            [('hi', 1), ('ho', 2), ('hi', 3), ('hi', 4), ('ho', 5), ('hi', 8), ('hi', 9), ('hi', 15)],
            type_info=Types.TUPLE([Types.STRING(), Types.INT()]))
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
        keyed = values.assign_timestamps_and_watermarks(strategy).key_by(lambda x: x[0], key_type=Types.STRING())
        if kind == "count":
            keyed.count_window(2).apply(Sum(), Types.TUPLE([Types.STRING(), Types.INT()])).print(kind)
        else:
            keyed.window(KINDS[kind]).process(Count(), RESULT).print(kind)
        env.execute()
