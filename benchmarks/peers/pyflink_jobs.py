"""The benchmark workloads on PyFlink, in the style of its documentation: typed, with a number sequence as the source.

    python -m benchmarks.peers.pyflink_jobs --workload keyed-count --records 200000 --keys 1000 --api process

`process` runs Python workers in processes of their own, as on a cluster. `loopback` runs them as threads of this
process, PyFlink's default for a local job. `thread` embeds Python in the JVM.
"""

import os
import sys
import sysconfig
from argparse import Namespace
from functools import partial

from benchmarks.peers.measuring import arguments, measure

try:
    from pyflink.common import Configuration, Time, Types, WatermarkStrategy
    from pyflink.common.watermark_strategy import TimestampAssigner
    from pyflink.datastream import (
        DataStream,
        FlatMapFunction,
        KeyedProcessFunction,
        RuntimeContext,
        StreamExecutionEnvironment,
    )
    from pyflink.datastream.connectors.number_seq import NumberSequenceSource
    from pyflink.datastream.functions import KeyedBroadcastProcessFunction, KeyedCoProcessFunction
    from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor
    from pyflink.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
    from pyflink.java_gateway import get_gateway
except ModuleNotFoundError as missing:
    raise SystemExit(
        "this script needs apache-flink: run it with the Python of an environment that has it"
    ) from missing

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


class EventTime(TimestampAssigner):
    def __init__(self, half: int) -> None:
        self._half = half

    def extract_timestamp(self, value, record_timestamp: int) -> int:
        j = value[1] % self._half
        return j + 5000 * (j // 10000)


class Remind(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


class SharedCount(KeyedCoProcessFunction):
    """Counts up for one input and down for the other, in one state."""

    def open(self, runtime_context: RuntimeContext) -> None:
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

    def open(self, runtime_context: RuntimeContext) -> None:
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


def draw(env: StreamExecutionEnvironment, workload: str, records: int, keys: int) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    pairs = numbers.map(lambda i: ("user_%d" % (i * 7919 % keys), i), PAIR)  # noqa: UP031  as in the other engines
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


def job(options: Namespace, records: int) -> None:
    configuration = Configuration()
    configuration.set_string("python.execution-mode", "thread" if options.api == "thread" else "process")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_python_executable(sys.executable)
    env.set_parallelism(options.parallelism)
    results = draw(env, options.workload, records, options.keys)
    discard = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()
    results._j_data_stream.sinkTo(discard)  # PyFlink has no discarding sink of its own
    env.execute()


def main() -> None:
    options = arguments("pyflink", ("process", "thread", "loopback"))
    workers = "process" if options.api == "process" else "loopback"
    os.environ["_python_worker_execution_mode"] = workers  # noqa: SIM112  the name PyFlink reads
    if options.api == "thread":
        # The Python inside the JVM does not find the packages of this environment by itself.
        paths = [sysconfig.get_path("purelib"), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    measure("pyflink", options, partial(job, options))


if __name__ == "__main__":
    main()
