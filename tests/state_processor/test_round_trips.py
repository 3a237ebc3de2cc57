"""Any state of a job goes from a savepoint to rows and into a new savepoint, and the job goes on as it would have."""

import pickle
import tempfile
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.datastream.functions import (
    AggregateFunction,
    CheckpointedFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
)
from ekorn.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    FoldingState,
    FoldingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueState,
    ValueStateDescriptor,
)
from ekorn.state_processor import (
    KeyedStateBootstrapFunction,
    KeyedStateReaderFunction,
    OperatorTransformation,
    SavepointReader,
    SavepointWriter,
    WindowReaderFunction,
)
from ekorn.state_processor.tools.editing import edit_savepoint
from ekorn.testing import on_local_engine
from ekorn.testing.scripted import ScriptedSource, split_evenly
from tests.examples_by_profile import examples
from tests.state_processor.programs import KEYS, Larger, restored, savepoint_of
from tests.state_processor.savepoint_functions import env
from tests.state_processor.source_rows import by_operator_rows, by_states, by_stored_entries
from tests.state_processor.window_programs import (
    SESSIONS,
    TUMBLING,
    ListSession,
    counted_process,
    evicted_reduce,
    session_process,
    sliced_process,
    sliding_aggregate,
    tumbling_reduce,
)

keys = st.sampled_from(["a", "", 1, 1.0, True, -(2**70), b"x", ("a", 1.0), (1, ("b", None)), 0.0, -0.0, float("nan")])
plain = st.one_of(st.integers(-(2**70), 2**70), st.text(max_size=3), st.floats(), st.booleans(), st.binary(max_size=3))
values = st.one_of(plain, st.lists(plain, max_size=3), st.dictionaries(st.text(max_size=2), plain, max_size=2))
writes = st.tuples(
    keys,
    st.sampled_from(
        [
            *("value", "clear", "list", "map", "unmap", "reducing", "aggregating", "folding"),
            *("ttl", "ttl list", "ttl map", "event", "processing"),
        ]
    ),
    values,
)


class Latest(ReduceFunction):
    def reduce(self, value1, value2):
        return value2


class Collected(AggregateFunction):
    def create_accumulator(self):
        return ()

    def add(self, value, accumulator):
        return (*accumulator, value)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def states_of(context):
    expiring = ValueStateDescriptor("ttl"), ListStateDescriptor("ttl list"), MapStateDescriptor("ttl map")
    for descriptor in expiring:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(100_000)).build())
    return (
        context.get_state(ValueStateDescriptor("value")),
        context.get_list_state(ListStateDescriptor("list")),
        context.get_map_state(MapStateDescriptor("map")),
        context.get_state(expiring[0]),
        context.get_list_state(expiring[1]),
        context.get_map_state(expiring[2]),
        context.get_reducing_state(ReducingStateDescriptor("reducing", Latest())),
        context.get_aggregating_state(AggregatingStateDescriptor("aggregating", Collected())),
        context.get_folding_state(FoldingStateDescriptor("folding", "", lambda text, value: text + repr(value)[:2])),
        context.get_state(ValueStateDescriptor("seen")),  # a key with timers alone has no row, as in Flink
    )


class Write(KeyedProcessFunction):
    """Does what a record says with the state of its key, and tells all of the state."""

    def open(self, runtime_context):
        self.states = states_of(runtime_context)

    def process_element(self, value, ctx):
        _, what, given, restored_to = value
        one, many, entries, fresh, fresh_many, fresh_entries, latest, all_of_them, text, seen = self.states
        seen.update((seen.value() or 0) + 1)
        match what:
            case "value":
                one.update(given)
            case "clear":
                one.clear()
            case "list":
                many.add(given)
            case "map":
                entries.put(repr(given)[:3], given)
            case "unmap":
                entries.clear()
            case "ttl":
                fresh.update(given)
            case "ttl list":
                fresh_many.add(given)
            case "ttl map":
                fresh_entries.put(repr(given)[:3], given)
            case "reducing":
                latest.add(given)
            case "aggregating":
                all_of_them.add(given)
            case "folding":
                text.add(given)
            case "event":
                ctx.timer_service().register_event_time_timer(10**15 + len(repr(given)))
            case _:
                ctx.timer_service().register_processing_time_timer(10**15 + len(repr(given)))
        yield repr((ctx.get_current_key(), what, tell(self.states), restored_to))

    def on_timer(self, timestamp, ctx):
        yield repr((ctx.get_current_key(), timestamp, ctx.time_domain().name, tell(self.states)))


def contents_of(states):
    """Return what each of the states holds, in a form from which `refill` fills it."""
    found: list[Any] = []
    for state in states:
        match state:
            case MapState():
                found.append(dict(state.items()))
            case ListState():
                found.append(list(state.get()))
            case ValueState():
                found.append(state.value())
            case _:
                found.append(state.get())
    return found


def refill(state, content):
    match state:
        case MapState():
            state.put_all(content)
        case AggregatingState():
            for value in content or ():
                state.add(value)
        case FoldingState() if content:
            state.add(Folded(content))
        case ReducingState() if content is not None:
            state.add(content)
        case ValueState() | ListState() if content is not None:
            state.update(content)


class Folded:
    """Is folded to a text as if it were the records that the text was folded from."""

    def __init__(self, text):
        self._text = text

    def __repr__(self):
        return WholeText(self._text)


class WholeText(str):
    """A text of which every slice is the whole."""

    def __getitem__(self, index):
        return str(self)


def tell(states):
    return [sorted(each.items(), key=repr) if isinstance(each, dict) else each for each in contents_of(states)]


class Keep(MapFunction, CheckpointedFunction):
    """Keeps the records in list, union, broadcast and raw state, and tells with each record what it was restored to."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.list = store.get_list_state(ListStateDescriptor("list"))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))
        self.rules = store.get_broadcast_state(MapStateDescriptor("rules"))
        self.raw = [part.get_stream().read() for part in context.get_raw_operator_state_inputs()]
        self.restored = repr((list(self.list.get()), list(self.union.get()), sorted(self.rules.items()), self.raw))

    def map(self, value):
        self.list.add(value)
        self.union.add(repr(value))
        self.rules.put("rule", 7)
        self.raw.append(repr(value).encode())
        return (*value, self.restored)

    def snapshot_state(self, context):
        out = context.get_raw_operator_state_output()
        for part in self.raw:
            out.start_new_partition()
            out.write(part)


class CountApart(KeyedProcessFunction, CheckpointedFunction):
    """Counts by key in a dict of its own, in raw keyed state."""

    def initialize_state(self, context):
        self.counts = Counter()
        for piece in context.get_raw_keyed_state_inputs():
            self.counts.update(pickle.load(piece.get_stream()))

    def snapshot_state(self, context):
        out = context.get_raw_keyed_operator_state_output()
        by_group = defaultdict(dict)
        for key, count in self.counts.items():
            by_group[out.key_group_of(key)][key] = count
        for group in out.get_key_group_list():
            if by_group[group]:
                out.start_new_key_group(group)
                pickle.dump(by_group[group], out)

    def process_element(self, value, ctx):
        self.counts[ctx.get_current_key()] += 1
        yield f"{value} for the {self.counts[ctx.get_current_key()]}. time"


def program(env, records):
    source = ScriptedSource(split_evenly(records, 2), (2,))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records").uid("records")
    kept = stream.map(Keep()).uid("keep")
    written = kept.key_by(lambda record: record[0]).process(Write()).uid("write")
    return written.key_by(lambda text: text[:3]).process(CountApart()).uid("apart")


class ReadAll(KeyedStateReaderFunction):
    def open(self, runtime_context):
        self.states = states_of(runtime_context)

    def read_key(self, key, ctx):
        timers = ctx.registered_event_time_timers(), ctx.registered_processing_time_timers()
        yield key, *contents_of(self.states), *timers


class FillAll(KeyedStateBootstrapFunction):
    def open(self, runtime_context):
        self.states = states_of(runtime_context)

    def process_element(self, value, ctx):
        _, *contents, event, processing = value
        for state, content in zip(self.states, contents, strict=True):
            refill(state, content)
        for timestamp in event:
            ctx.timer_service().register_event_time_timer(timestamp)
        for timestamp in processing:
            ctx.timer_service().register_processing_time_timer(timestamp)


def by_rows(old, new, max_parallelism=128):
    """Read a savepoint as rows, and write a new one from them."""
    first = env(2)
    rows = SavepointReader.read(first, old).read_keyed_state("write", ReadAll())
    past = OperatorTransformation.bootstrap_with(rows).set_max_parallelism(max_parallelism)
    filled = past.key_by(lambda row: row[0]).transform(FillAll())
    writer = SavepointWriter.from_existing_savepoint(first, old).remove_operator("write").with_operator("write", filled)
    with on_local_engine():
        return writer.write(new)


def by_entries(old, new):
    """Read the entries of a savepoint, and write them to a new one."""
    return edit_savepoint(old, "write", lambda key, state: dict(state), new).path


def by_entry_rows(old, new):
    """Let all keyed state, with its timers, go through rows of a data source of Spark, whatever the keys and values."""
    return by_stored_entries(old, new, "write")


def by_frames(old, new):
    """Let list, union, broadcast and raw state go through rows of a data source of Spark, whatever their values."""
    base = Path(new).parent / "frames"
    kept = by_operator_rows(old, base, "keep", ["list", "union", "rules", "_raw/operator"], stored_form=True)
    return by_operator_rows(kept, base, "apart", ["_raw/keyed"], stored_form=True)


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    records=st.lists(writes, min_size=14, max_size=24),
    origin=st.sampled_from([("hashmap", False), ("hashmap", True), ("rocksdb", False), ("rocksdb", True)]),
    target=st.sampled_from(["hashmap", "rocksdb"]),
    round_trip=st.sampled_from([by_rows, partial(by_rows, max_parallelism=7), by_entries, by_entry_rows, by_frames]),
)
def test_the_state_of_any_job_survives_the_way_through_rows(records, origin, target, round_trip):
    backend, native = origin
    with tempfile.TemporaryDirectory() as folder:
        base, job = Path(folder), partial(program, records=records)
        old = savepoint_of(job, base, backend=backend, native=native, after=2)
        new = round_trip(old, str(base / "new"))
        told = [restored(job, p, base / n, backend=target, parallelism=3) for p, n in ((old, "a"), (new, "b"))]
        assert told[0], "the job was not over"
        assert sorted(told[0]) == sorted(told[1])


def copied(old, new):
    """Write a savepoint with all operators of another."""
    with on_local_engine():
        return SavepointWriter.from_existing_savepoint(env(), old).write(new)


class Elements(WindowReaderFunction):
    """Yields what a window holds: its records, or the one that they were reduced to."""

    def read_window(self, key, context, elements):
        yield from elements


def read_tumbling(reader):
    return reader.window(TUMBLING).reduce("windows", Larger(), Elements(), reduce_type=Types.LONG())


def read_sessions(reader):
    return reader.window(SESSIONS).process("windows", Elements(), state_type=Types.LONG())


REFILLED = {
    tumbling_reduce: (read_tumbling, TUMBLING, lambda windows: windows.reduce(Larger())),
    session_process: (read_sessions, SESSIONS, lambda windows: windows.process(ListSession())),
}


def by_filling(windows, old, new):
    """Read the contents of windows as rows, and fill the windows of a new savepoint from them."""
    read, assigner, fill = REFILLED[windows]
    first = env(2)
    past = OperatorTransformation.bootstrap_with(read(SavepointReader.read(first, old)))
    timed = past.assign_timestamps(lambda number, _: number).key_by(lambda n: n % KEYS, Types.LONG())
    filled = fill(timed.window(assigner))
    writer = SavepointWriter.from_existing_savepoint(first, old).remove_operator("windows")
    with on_local_engine():
        return writer.with_operator("windows", filled).write(new)


@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    given_numbers=st.lists(st.integers(0, 99), min_size=30, max_size=40),
    windows=st.sampled_from(
        [tumbling_reduce, sliding_aggregate, sliced_process, session_process, counted_process, evicted_reduce]
    ),
    origin=st.sampled_from([("hashmap", False), ("hashmap", True), ("rocksdb", False), ("rocksdb", True)]),
    target=st.sampled_from(["hashmap", "rocksdb"]),
    way=st.sampled_from(["copied", "filled", "stored rows", "typed rows"]),
)
def test_any_windows_survive_the_way_through_a_new_savepoint(given_numbers, windows, origin, target, way):
    backend, native = origin
    with tempfile.TemporaryDirectory() as folder:
        base, job = Path(folder), partial(windows, given=given_numbers)
        old = savepoint_of(job, base, backend=backend, native=native, after=5)
        new = str(base / "new")
        match way:
            case "filled" if windows in REFILLED:
                by_filling(windows, old, new)
            case "typed rows" if windows is not sliced_process:
                new = by_states(old, base, "windows")
            case "stored rows" | "typed rows":
                by_stored_entries(old, new, "windows")
            case _:
                copied(old, new)
        told = [restored(job, p, base / n, backend=target, parallelism=1) for p, n in ((old, "a"), (new, "b"))]
        assert _in_any_order(told[0]) == _in_any_order(told[1]) and told[0]


def _in_any_order(records):
    """Sort records, and the contents of windows in them: a savepoint that is filled anew does not keep their order."""
    return sorted(repr((r[0], sorted(r[1])) if isinstance(r, tuple) else r) for r in records)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize(
    "windows", [tumbling_reduce, sliding_aggregate, session_process, counted_process, evicted_reduce]
)
def test_windows_survive_the_copy_of_a_savepoint(tmp_path, windows, backend):
    old = savepoint_of(windows, tmp_path, backend=backend, native=True, after=8)
    with on_local_engine():
        new = SavepointWriter.from_existing_savepoint(env(), old).write(tmp_path / "new")
    told = [restored(windows, p, tmp_path / n, backend=backend, parallelism=1) for p, n in ((old, "a"), (new, "b"))]
    assert told[0] == told[1] and told[0]
