"""Every kind of function can take part in checkpoints: it is notified, snapshotted and restored."""

from typing import Any

import pytest

from ekorn.common import Configuration, RestartStrategies, Time, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import (
    AsyncDataStream,
    CheckpointedFunction,
    CheckpointListener,
    ListCheckpointed,
    StreamExecutionEnvironment,
)
from ekorn.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    SinkFunction,
    WindowFunction,
)
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted

LOG = []


class Told(CheckpointListener):
    """Counts its calls in `self.calls`, and logs its notifications."""

    calls = 0

    def open(self, runtime_context):
        LOG.append("open")

    def notify_checkpoint_complete(self, checkpoint_id):
        LOG.append(("complete", checkpoint_id))

    def count(self, result):
        self.calls += 1
        return result


class Checkpointed(Told, CheckpointedFunction):
    def initialize_state(self, context):
        self.kept = context.get_operator_state_store().get_list_state(ListStateDescriptor("calls", Types.INT()))
        self.calls = sum(self.kept.get())
        LOG.append(("initialize", context.is_restored(), self.calls))

    def snapshot_state(self, context):
        self.kept.update([self.calls])
        LOG.append(("snapshot", context.get_checkpoint_id(), self.calls))


class Listed(Told, ListCheckpointed):
    def restore_state(self, state):
        self.calls = sum(state)
        LOG.append(("initialize", True, self.calls))

    def snapshot_state(self, checkpoint_id, timestamp):
        LOG.append(("snapshot", checkpoint_id, self.calls))
        return [self.calls]


def functions(base: Any):
    """One function of each kind that counts its calls."""

    class Map(base, MapFunction):
        def map(self, value):
            return self.count(value)

    class FlatMap(base, FlatMapFunction):
        def flat_map(self, value):
            return self.count([value])

    class Filter(base, FilterFunction):
        def filter(self, value):
            return self.count(True)

    class Process(base, ProcessFunction):
        def process_element(self, value, ctx):
            yield self.count(value)

    class KeyedProcess(base, KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield self.count(value)

    class Reduce(base, ReduceFunction):
        def reduce(self, value1, value2):
            return self.count(value1 + value2)

    class Aggregate(base, AggregateFunction):
        def create_accumulator(self):
            return 0

        def add(self, value, accumulator):
            return self.count(accumulator + value)

        def get_result(self, accumulator):
            return accumulator

        def merge(self, a, b):
            return a + b

    class Window(base, WindowFunction):
        def apply(self, key, window, inputs):
            return self.count(list(inputs))

    class ProcessWindow(base, ProcessWindowFunction):
        def process(self, key, context, elements):
            return self.count(list(elements))

    class AllWindow(base, AllWindowFunction):
        def apply(self, window, inputs):
            return self.count(list(inputs))

    class ProcessAllWindow(base, ProcessAllWindowFunction):
        def process(self, context, elements):
            return self.count(list(elements))

    class CoMap(base, CoMapFunction):
        def map1(self, value):
            return self.count(value)

        map2 = map1

    class CoFlatMap(base, CoFlatMapFunction):
        def flat_map1(self, value):
            return self.count([value])

        flat_map2 = flat_map1

    class CoProcess(base, CoProcessFunction):
        def process_element1(self, value, ctx):
            yield self.count(value)

        process_element2 = process_element1

    class KeyedCoProcess(base, KeyedCoProcessFunction):
        def process_element1(self, value, ctx):
            yield self.count(value)

        process_element2 = process_element1

    class Broadcast(base, BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield self.count(value)

        process_broadcast_element = process_element

    class KeyedBroadcast(base, KeyedBroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield self.count(value)

        process_broadcast_element = process_element

    class Async(base, AsyncFunction):
        async def async_invoke(self, value):
            return self.count([value])

        def timeout(self, value):
            raise AssertionError("nothing takes long here")

    class Sink(base, SinkFunction):
        def invoke(self, value, context):
            self.count(value)

    class IntervalJoin(base, ProcessJoinFunction):
        def process_element(self, left, right, ctx):
            yield self.count(left)

    class Join(base, JoinFunction):
        def join(self, left, right):
            return self.count(left)

    class FlatJoin(base, FlatJoinFunction):
        def join(self, left, right):
            return self.count([left])

    class CoGroup(base, CoGroupFunction):
        def co_group(self, left, right):
            return self.count([*left, *right])

    return {name: made for name, made in locals().items() if isinstance(made, type) and name != "base"}


RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())
TWO_MS = TumblingEventTimeWindows.of(Time.milliseconds(2))


def keyed(stream):
    return stream.key_by(lambda n: n % 2)


def joined(a, b):
    return a.join(b).where(lambda n: n).equal_to(lambda n: n).window(TWO_MS)


JOBS = {
    "Map": lambda f, a, b: a.map(f()),
    "FlatMap": lambda f, a, b: a.flat_map(f()),
    "Filter": lambda f, a, b: a.filter(f()),
    "Process": lambda f, a, b: a.process(f()),
    "KeyedProcess": lambda f, a, b: keyed(a).process(f()),
    "Reduce": lambda f, a, b: keyed(a).reduce(f()),
    "Aggregate": lambda f, a, b: keyed(a).window(TWO_MS).aggregate(f()),
    "Window": lambda f, a, b: keyed(a).window(TWO_MS).apply(f()),
    "ProcessWindow": lambda f, a, b: keyed(a).window(TWO_MS).process(f()),
    "AllWindow": lambda f, a, b: a.window_all(TWO_MS).apply(f()),
    "ProcessAllWindow": lambda f, a, b: a.window_all(TWO_MS).process(f()),
    "CoMap": lambda f, a, b: a.connect(b).map(f()),
    "CoFlatMap": lambda f, a, b: a.connect(b).flat_map(f()),
    "CoProcess": lambda f, a, b: a.connect(b).process(f()),
    "KeyedCoProcess": lambda f, a, b: keyed(a).connect(keyed(b)).process(f()),
    "Broadcast": lambda f, a, b: a.connect(b.broadcast(RULES)).process(f()),
    "KeyedBroadcast": lambda f, a, b: keyed(a).connect(b.broadcast(RULES)).process(f()),
    "Async": lambda f, a, b: AsyncDataStream.unordered_wait(a, f(), Time.seconds(60), 10, Types.INT()),
    "Sink": lambda f, a, b: (a.add_sink(f()), a)[1],
    "IntervalJoin": lambda f, a, b: (
        keyed(a).interval_join(keyed(b)).between(Time.milliseconds(0), Time.milliseconds(0)).process(f())
    ),
    "Join": lambda f, a, b: joined(a, b).apply(f()),
    "FlatJoin": lambda f, a, b: joined(a, b).apply(f()),
    "CoGroup": lambda f, a, b: a.co_group(b).where(lambda n: n).equal_to(lambda n: n).window(TWO_MS).apply(f()),
}


class Itself(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


def numbers(env, name):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
    return env.from_source(ScriptedSource([range(16)], [2]), times, name)


@pytest.mark.parametrize(
    ("base", "kind"),
    [*((Checkpointed, kind) for kind in JOBS), *((Listed, kind) for kind in ("KeyedProcess", "Sink", "CoGroup"))],
)
def test_a_function_of_any_kind_takes_part_in_checkpoints(base, kind):
    LOG.clear()
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(1)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    stream = JOBS[kind](functions(base)[kind], numbers(env, "a"), numbers(env, "b"))
    run_scripted(stream, Script(checkpoints=[True], crashes=[Crash("after-epoch", 5)]))

    begins = [entry for entry in LOG if entry[0] == "initialize"]
    if base is Checkpointed:
        assert begins.pop(0) == ("initialize", False, 0)
        assert LOG[:2] == [("initialize", False, 0), "open"]
    assert len(begins) == 1, "it was restored once, after the crash"
    at = LOG.index(begins[0])
    completed = max(entry[1] for entry in LOG[:at] if entry[0] == "complete")
    (_, _, calls) = begins[0]
    assert calls > 0
    assert ("snapshot", completed, calls) in LOG[:at], "it goes on from what the last completed checkpoint kept"
    assert LOG[at + 1] == "open"
    assert any(entry[0] == "complete" and entry[1] > completed for entry in LOG[at:])
