"""Time on real Spark: windows, and timers that fire while no record arrives."""

from __future__ import annotations

from ekorn.common import Configuration, Time, WatermarkStrategy
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.window import TumblingEventTimeWindows


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)


class Remind(KeyedProcessFunction):
    """Emits a reminder half a second after each record, by the wall clock."""

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 500)

    def on_timer(self, timestamp, ctx):
        yield "due", ctx.get_current_key(), timestamp <= ctx.timer_service().current_processing_time()


def test_a_processing_time_timer_fires_while_no_record_flows() -> None:
    rare = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(0.02))  # one, then silence
    stream = environment().from_source(rare, WatermarkStrategy.no_watermarks(), "rare")
    with stream.key_by(lambda n: "k").process(Remind()).execute_and_collect("remind") as results:
        assert next(results) == ("due", "k", True)


def test_windows_over_two_subtasks_sum_what_a_plain_loop_sums() -> None:
    records = [(f"k{n % 7}", n, n * 10) for n in range(5000)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda r, _: r[2])
    sums = (
        environment()
        .from_collection(records)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda r: r[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2]) // 1000 * 1000))
    )
    expected: dict[tuple[str, int], int] = {}
    for key, number, time_ms in records:
        expected[key, time_ms // 1000] = expected.get((key, time_ms // 1000), 0) + number
    with sums.execute_and_collect("sums") as results:
        found = {(key, time_ms // 1000): total for key, total, time_ms in results}
    assert found == expected
