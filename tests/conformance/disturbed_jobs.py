"""Jobs for the tests that cut the input into other epochs, crash and rescale: programs, sources and disturbances.

`PROGRAMS` names a program for every kind of operator; `undisturbed` runs one of them in one epoch without a crash. The
strategies draw the disturbances: `runs` how the input is cut, `scripts` and `crashes` where the job fails.
"""

import asyncio
import shutil
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import pyarrow.compute as pc
from hypothesis import strategies as st

from ekorn.common import Configuration, RestartStrategies, Row, Time, Types, WatermarkStrategy
from ekorn.datastream import AsyncDataStream, ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.datastream import columns as aggregates
from ekorn.datastream.columns import Count as CountRows
from ekorn.datastream.columns import First, Sum
from ekorn.datastream.functions import (
    AggregateFunction,
    AsyncBatchFunction,
    AsyncFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
)
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from ekorn.datastream.window import SlidingEventTimeWindows
from ekorn.testing.scripted import Crash, Point, Script, ScriptedSource, run_scripted, split_evenly
from tests.conformance.external_system import TransactionalSink

KEYS = ("a", "b", 7, ("t", 1), 1.5, -1, "", 0.0, True, ("t", 2.0), b"k")
INPUT = [(KEYS[n * n % 11 if n % 3 else n % 11], n) for n in range(50)]  # some keys are frequent, some are rare


# ---------------------------------------------------------------------------------------------------- the programs


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


class Recent(FlatMapFunction):
    """Emits every three records of a key together; changes objects that it read, which must have no effect."""

    def open(self, runtime_context):
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", Types.PICKLED_BYTE_ARRAY()))

    def flat_map(self, value):
        self.recent.add({"seen": [value[1]]})
        found = list(self.recent.get())
        if len(found) == 3:
            yield value[0], tuple(each["seen"][0] for each in found)
            self.recent.clear()
        for each in found:
            each["seen"].append("never written back")


class Tally(MapFunction):
    def open(self, runtime_context):
        self.tally = runtime_context.get_map_state(MapStateDescriptor("tally", Types.INT(), Types.LONG()))

    def map(self, value):
        place = value[1] % 3
        self.tally.put(place, (self.tally.get(place) or 0) + value[1])
        if value[1] % 11 == 0:
            self.tally.remove((place + 1) % 3)
        return value[0], sorted(self.tally.items())


class Mean(AggregateFunction):
    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return [a[0] + b[0], a[1] + b[1]]


class Summary(MapFunction):
    def open(self, runtime_context):
        self.largest = runtime_context.get_reducing_state(ReducingStateDescriptor("largest", max, Types.INT()))
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        )

    def map(self, value):
        self.largest.add(value[1])
        self.mean.add(value[1])
        return value[0], self.largest.get(), self.mean.get()


class EveryOther(FilterFunction):
    def open(self, runtime_context):
        self.odd = runtime_context.get_state(ValueStateDescriptor("odd", Types.BOOLEAN()))

    def filter(self, value):
        odd = not self.odd.value()
        self.odd.update(odd)
        return odd


class Slowly(AsyncFunction):
    """Answers after some milliseconds, so that some requests are always in flight."""

    async def async_invoke(self, value):
        await asyncio.sleep(value[1] * 13 % 5 / 1000)
        return [value] * (value[1] % 3)


class SlowlyTogether(AsyncBatchFunction):
    async def async_invoke_batch(self, inputs):
        await asyncio.sleep(len(inputs) / 1000)
        return [(key, number, "asked") for key, number in inputs]


def keyed(stream):
    return stream.key_by(lambda value: value[0])


PROGRAMS = {
    "count": lambda s: keyed(s).process(Count()),
    "reduce": lambda s: keyed(s).reduce(lambda a, b: (a[0], a[1] + b[1])),
    "reduce of changeable records": lambda s: keyed(s.map(lambda v: [v[0], [v[1]]])).reduce(
        lambda a, b: [a[0], a[1] + b[1]]
    ),
    "sum": lambda s: keyed(s).sum(1),
    "max_by": lambda s: keyed(s.map(lambda v: (v[0], v[1] * 7 % 13, v[1]))).max_by(1),
    "fold": lambda s: keyed(s).fold([], lambda acc, v: [*acc[-2:], v[1]]),
    "map_with_state": lambda s: keyed(s).map_with_state(lambda v, n: ((v[0], n or 0), (n or 0) + v[1])),
    "filter_with_state": lambda s: keyed(s).filter_with_state(lambda v, n: (v[1] % 2 == (n or 0) % 2, (n or 0) + 1)),
    "flat_map_with_state": lambda s: keyed(s).flat_map_with_state(
        lambda v, held: ([(v[0], *held, v[1])], None) if held and len(held) == 2 else ([], [*(held or ()), v[1]])
    ),
    "list state": lambda s: keyed(s).flat_map(Recent()),
    "map state": lambda s: keyed(s).map(Tally()),
    "reducing and aggregating state": lambda s: keyed(s).map(Summary()),
    "state in a filter": lambda s: keyed(s).filter(EveryOther()),
    "stateless, over every partitioner": lambda s: (
        s.rebalance().map(lambda v: v[1]).rescale().map(lambda v: v + 1).shuffle().filter(lambda v: v % 2)
    ),
    "requests in order": lambda s: AsyncDataStream.ordered_wait(s, Slowly(), Time.seconds(60), 4),
    "requests unordered": lambda s: AsyncDataStream.unordered_wait(s, Slowly(), Time.seconds(60), 4),
    "requests for batches": lambda s: AsyncDataStream.ordered_wait_batch(s, SlowlyTogether(), Time.seconds(60), 3),
    "two keyed operators": lambda s: keyed(keyed(s).process(Count())).reduce(lambda a, b: (a[0], a[1] + b[1])),
    "a stream united with itself": lambda s: keyed(s.union(s)).process(Count()),
}


PAIRS = Types.ROW_NAMED(["key", "number"], [Types.STRING(), Types.LONG()])
AGGREGATES = {
    "total": Sum("number"),
    "pairs": CountRows(),
    "mean": aggregates.Mean("number"),
    "first": First("key"),
    "last": aggregates.Last("number"),
    "least": aggregates.Min("number"),
    "most": aggregates.Max("key"),
    "distinct": aggregates.CountDistinct("number"),
    "about": aggregates.ApproxCountDistinct("number"),
    "middle": aggregates.Quantile("number", [0.5, 0.9]),
}


def pairs(stream):
    return stream.map(lambda v: Row(key=repr(v[0]), number=v[1]), PAIRS)


def windows(stream):
    """Return sliding windows that stay for late rows; there are none, and no window fires twice."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("number")
    keyed_stream = stream.assign_timestamps_and_watermarks(strategy).key_by("key")
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(8), Time.milliseconds(4))
    return keyed_stream.window(assigner).allowed_lateness(6).aggregate(**AGGREGATES)


PROGRAMS |= {
    "windows on rows": lambda s: windows(pairs(s)),
    "windows on columns": lambda s: windows(pairs(s).to_columns(max_rows=3)),
    "aggregates on rows": lambda s: pairs(s).key_by("key").aggregate(**AGGREGATES),
    "aggregates on columns": lambda s: pairs(s).to_columns(max_rows=3).key_by("key").aggregate(**AGGREGATES),
    "columns over every partitioner": lambda s: (
        pairs(s).to_columns(max_rows=4).rebalance().filter(pc.field("number") > 3).shuffle().project("number")
    ),
}

UNORDERED = {"a stream united with itself", "requests unordered", "windows on rows", "windows on columns"}


# ---------------------------------------------------------------------------------------------------- the machinery


@contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="ekorn-test-")
    try:
        yield path
    finally:
        shutil.rmtree(path)


def environment(directory=None, parallelism=1, restarts=50, incremental=True, num_retained=1):
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.incremental", str(incremental).lower())
    configuration.set_string("execution.checkpointing.num-retained", str(num_retained))
    configuration.set_string("execution.checkpointing.data-inline-threshold", "0")
    configuration.set_string("ekorn.async-io.linger", "0 ms")  # epochs leave requests in flight
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(100)
    if directory is not None:
        env.get_checkpoint_config().set_checkpoint_storage_dir(directory)
        env.get_checkpoint_config().set_externalized_checkpoint_retention(
            ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        )
    strategy = RestartStrategies.fixed_delay_restart(restarts, 0) if restarts else RestartStrategies.no_restart()
    env.set_restart_strategy(strategy)
    return env


def source(env, runs, splits=1, records=INPUT):
    scripted = ScriptedSource(split_evenly(records, splits), runs)
    return env.from_source(scripted, WatermarkStrategy.no_watermarks(), "scripted").uid("source")


def draw(env, name, runs, system, splits=1):
    result = PROGRAMS[name](source(env, runs, splits)).uid("program")
    result.add_sink(TransactionalSink(system)).uid("sink")
    return result


def undisturbed(name):
    if name not in _UNDISTURBED:
        env = StreamExecutionEnvironment.get_execution_environment()
        _UNDISTURBED[name] = run_scripted(PROGRAMS[name](source(env, None))).records
    return _UNDISTURBED[name]


_UNDISTURBED = {}


def counted(records):
    return Counter(map(repr, records))


POINTS = get_args(Point)
crashes = st.lists(st.builds(Crash, st.sampled_from(POINTS), st.integers(1, 9)), max_size=4)
runs = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any)
checkpoints = st.lists(st.booleans(), min_size=1, max_size=4).filter(any)
lost = st.frozensets(st.integers(1, 40), max_size=8)
scripts = st.builds(Script, checkpoints=checkpoints, crashes=crashes, failed_snapshots=lost, kill=st.booleans())


def newest_checkpoint(directory):
    """Return the newest completed checkpoint of any job below the directory, by its id: later jobs continue the ids."""
    found = list(Path(directory).glob("*/chk-*/_metadata"))
    return str(max(found, key=lambda path: int(path.parent.name[4:])).parent) if found else None
