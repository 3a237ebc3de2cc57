"""Any state of a job goes from a savepoint to rows and into a new savepoint, and the job goes on as it would have."""

import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamias.common import Time, WatermarkStrategy
from tamias.datastream.functions import KeyedProcessFunction
from tamias.datastream.state import (
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from tamias.state_processor import (
    KeyedStateBootstrapFunction,
    KeyedStateReaderFunction,
    OperatorTransformation,
    SavepointReader,
    SavepointWriter,
)
from tamias.state_processor.editing import edit_savepoint
from tamias.testing import on_local_engine
from tamias.testing.scripted import ScriptedSource, split_evenly
from tests.examples_by_profile import examples
from tests.state_processor.programs import restored, savepoint_of
from tests.state_processor.savepoint_functions import env
from tests.state_processor.window_programs import (
    counted_process,
    evicted_reduce,
    session_process,
    sliding_aggregate,
    tumbling_reduce,
)

keys = st.sampled_from(["a", "", 1, 1.0, True, -(2**70), b"x", ("a", 1.0), (1, ("b", None)), 0.0, -0.0, float("nan")])
plain = st.one_of(st.integers(-(2**70), 2**70), st.text(max_size=3), st.floats(), st.booleans(), st.binary(max_size=3))
values = st.one_of(plain, st.lists(plain, max_size=3), st.dictionaries(st.text(max_size=2), plain, max_size=2))
writes = st.tuples(
    keys, st.sampled_from(["value", "clear", "list", "map", "unmap", "ttl", "event", "processing"]), values
)


def states_of(context):
    ttl = ValueStateDescriptor("ttl")
    ttl.enable_time_to_live(StateTtlConfig.new_builder(Time.days(100_000)).build())
    return (
        context.get_state(ValueStateDescriptor("value")),
        context.get_list_state(ListStateDescriptor("list")),
        context.get_map_state(MapStateDescriptor("map")),
        context.get_state(ttl),
        context.get_state(ValueStateDescriptor("seen")),  # a key with timers alone has no row, as in Flink
    )


class Write(KeyedProcessFunction):
    """Does what a record says with the state of its key, and tells all of the state."""

    def open(self, runtime_context):
        self.states = states_of(runtime_context)

    def process_element(self, value, ctx):
        _, what, given = value
        one, many, entries, fresh, seen = self.states
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
            case "event":
                ctx.timer_service().register_event_time_timer(10**15 + len(repr(given)))
            case _:
                ctx.timer_service().register_processing_time_timer(10**15 + len(repr(given)))
        yield repr((ctx.get_current_key(), what, tell(self.states)))

    def on_timer(self, timestamp, ctx):
        yield repr((ctx.get_current_key(), timestamp, ctx.time_domain().name, tell(self.states)))


def tell(states):
    one, many, entries, fresh, seen = states
    return one.value(), list(many.get()), sorted(entries.items(), key=repr), fresh.value(), seen.value()


def program(env, records):
    source = ScriptedSource(split_evenly(records, 2), (2,))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records").uid("records")
    return stream.key_by(lambda record: record[0]).process(Write()).uid("write")


class ReadAll(KeyedStateReaderFunction):
    def open(self, runtime_context):
        self.states = states_of(runtime_context)

    def read_key(self, key, ctx):
        one, many, entries, fresh, seen = self.states
        timers = ctx.registered_event_time_timers(), ctx.registered_processing_time_timers()
        yield key, one.value(), list(many.get()), dict(entries.items()), fresh.value(), seen.value(), *timers


class FillAll(KeyedStateBootstrapFunction):
    def open(self, runtime_context):
        self.states = states_of(runtime_context)

    def process_element(self, value, ctx):
        _, *contents, event, processing = value
        for state, content in zip(self.states, contents, strict=True):
            if isinstance(state, MapState):
                state.put_all(content)
            elif content is not None:
                state.update(content)
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


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    records=st.lists(writes, min_size=14, max_size=24),
    origin=st.sampled_from([("hashmap", False), ("hashmap", True), ("rocksdb", False), ("rocksdb", True)]),
    target=st.sampled_from(["hashmap", "rocksdb"]),
    round_trip=st.sampled_from([by_rows, partial(by_rows, max_parallelism=7), by_entries]),
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
