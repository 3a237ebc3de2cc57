"""The benchmark workloads on Ekorn and embedded Spark.

    python -m benchmarks.ekorn_jobs --workload keyed-count --records 4000000 --keys 1000 [--api continuous]

The records and functions are those of the peers; `peers/measuring.py` describes the workloads.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from benchmarks.peers.measuring import arguments, measure
from ekorn.common import Configuration, Time, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import FlatMapFunction, KeyedProcessFunction, SinkFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.functions import KeyedBroadcastProcessFunction, KeyedCoProcessFunction
from ekorn.datastream.state import MapStateDescriptor, ValueStateDescriptor
from ekorn.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


class EventTime(TimestampAssigner):
    def __init__(self, half: int) -> None:
        self._half = half

    def extract_timestamp(self, value, record_timestamp):
        j = value[1] % self._half
        return j + 5000 * (j // 10000)


class Remind(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


class SharedCount(KeyedCoProcessFunction):
    """Counts up for one input and down for the other, in one state."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element1(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count

    def process_element2(self, value, ctx):
        count = (self.count.value() or 0) - 1
        self.count.update(count)
        yield value[0], count


RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())


class ApplyRules(KeyedBroadcastProcessFunction):
    """Reads the rule of each record's number, and counts in the state of its key."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        limit = ctx.get_broadcast_state(RULES).get(value[1] % 10)
        if limit is None or value[1] >= limit:
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            yield value[0], count

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, value)


WINDOWS = {
    "tumbling": lambda: TumblingEventTimeWindows.of(Time.seconds(10)),
    "sliding": lambda: SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2)),
    "session": lambda: EventTimeSessionWindows.with_gap(Time.seconds(2)),
}


class WithNegative(FlatMapFunction):
    def flat_map(self, value):
        yield value
        yield value[0], -value[1]


class Discard(SinkFunction):
    def invoke(self, value, context):
        pass


def draw(env: StreamExecutionEnvironment, workload: str, records: int, keys: int):
    """Draw the workload as a stream."""
    numbers = env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
    pairs = numbers.map(lambda i: ("user_%d" % (i * 7919 % keys), i), PAIR)  # noqa: UP031 - as in the other engines
    if workload == "stateless-chain":
        return (
            pairs.filter(lambda pair: pair[1] % 2 == 0)
            .map(lambda pair: (pair[0], pair[1] * 3), PAIR)
            .flat_map(WithNegative(), PAIR)
        )
    if workload in WINDOWS or workload == "timers":
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        pairs = pairs.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(EventTime(records // 2)))
    keyed = pairs.key_by(lambda pair: pair[0], Types.STRING())
    if workload == "co-process":
        even, odd = pairs.filter(lambda pair: pair[1] % 2 == 0), pairs.filter(lambda pair: pair[1] % 2 == 1)
        both = even.connect(odd).key_by(lambda pair: pair[0], lambda pair: pair[0], Types.STRING())
        return both.process(SharedCount(), PAIR)
    if workload == "broadcast":
        rules = env.from_collection(list(range(10)), Types.LONG()).broadcast(RULES)
        return keyed.connect(rules).process(ApplyRules(), PAIR)
    if workload in WINDOWS:
        return keyed.window(WINDOWS[workload]()).reduce(lambda a, b: (a[0], a[1] + b[1]))
    if workload == "timers":
        return keyed.process(Remind(), PAIR)
    if workload == "rolling-reduce":
        return keyed.reduce(lambda a, b: (a[0], a[1] + b[1]))
    return keyed.process(Count(), PAIR)


def environment(parallelism: int, execution: str = "epochs") -> StreamExecutionEnvironment:
    """Create an environment on two local cores, as the peers have. A continuous job has more tasks, which wait."""
    configuration = Configuration()
    configuration.set_string("ekorn.execution", execution)
    configuration.set_string("spark.master", "local[2]" if execution == "epochs" else "local[16]")
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def job(options: Namespace, records: int) -> None:
    """Run the workload over a number of records."""
    env = environment(options.parallelism, options.api)
    draw(env, options.workload, records, options.keys).add_sink(Discard())
    env.execute(options.workload)


if __name__ == "__main__":
    given = arguments("ekorn", ("epochs", "continuous"))
    measure("ekorn", given, partial(job, given))
