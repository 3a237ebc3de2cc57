"""Savepoints are written from streams and from other savepoints, and jobs start from them."""

from functools import partial
from pathlib import Path

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.checkpoint.signing import read_signing_key
from ekorn.common import Configuration, RestartStrategies, Row, Types, WatermarkStrategy
from ekorn.connectors.datagen import DataGeneratorSource
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.datastream.state_backend import EmbeddedRocksDBStateBackend
from ekorn.datastream.window import CountEvictor, CountTrigger, GlobalWindows
from ekorn.errors import CheckpointError, InvalidProgramError, JobExecutionError, RestoreError, StateError
from ekorn.functions.state.checkpointed import CheckpointedFunction
from ekorn.state.codecs import ExactCodec
from ekorn.state_processor import (
    BroadcastStateBootstrapFunction,
    KeyedStateBootstrapFunction,
    OperatorIdentifier,
    OperatorTransformation,
    SavepointReader,
    SavepointWriter,
    StateBootstrapFunction,
)
from ekorn.testing import collect_locally, on_local_engine
from tests.state_processor.programs import (
    KEYS,
    Average,
    Larger,
    checkpoint_of,
    every_kind,
    numbers,
    restored,
    savepoint_of,
)
from tests.state_processor.savepoint_functions import (
    EARLIER,
    LATER,
    FillEveryKind,
    ReadEverything,
    ReadTimers,
    by_key,
    env,
    last_by_key,
)
from tests.state_processor.window_programs import (
    SESSIONS,
    SLIDING,
    TUMBLING,
    ListSession,
    ListWindow,
    counted_process,
    evicted_reduce,
    session_process,
    sliding_aggregate,
    tumbling_reduce,
)


class FillPositions(StateBootstrapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.seen = store.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.all = store.get_union_list_state(ListStateDescriptor("all"))

    def process_element(self, value, ctx):
        self.seen.add(value)

    def snapshot_state(self, context):
        self.all.update([(n, "seen") for n in self.seen.get()])


def filled(environment, given=EARLIER):
    return (
        OperatorTransformation.bootstrap_with(environment.from_collection(list(given), Types.LONG()))
        .key_by(lambda n: n % KEYS)
        .transform(FillEveryKind())
    )


def without_inline_state(environment):
    environment.configure(Configuration().set_string("execution.checkpointing.data-inline-threshold", "0"))
    return environment


def write(writer, path):
    with on_local_engine():
        return writer.write(path)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_job_starts_from_state_that_was_filled_from_a_stream(tmp_path, backend):
    first = env(2)
    path = write(SavepointWriter.new_savepoint(first, 128).with_operator("every-kind", filled(first)), tmp_path / "new")
    assert path == str(tmp_path / "new")
    undisturbed = restored(every_kind, None, tmp_path / "whole")
    later = restored(partial(every_kind, given=LATER), path, tmp_path, backend=backend, parallelism=3)
    assert last_by_key(later) == last_by_key(undisturbed) and len(later) == len(LATER)


def test_timers_do_not_fire_while_state_is_filled_and_are_in_the_savepoint(tmp_path):
    class FillDueTimers(FillEveryKind):
        def process_element(self, value, ctx):
            self.states[0].update(value)
            ctx.timer_service().register_event_time_timer(5)
            ctx.timer_service().register_processing_time_timer(1)

        def on_timer(self, timestamp, ctx):
            raise AssertionError("fired while bootstrapping")

    first = env(2)
    stream = numbers(first, EARLIER)  # in several epochs: the clock advances between them
    filling = OperatorTransformation.bootstrap_with(stream).key_by(lambda n: n % KEYS).transform(FillDueTimers())
    path = write(SavepointWriter.new_savepoint(first, 16).with_operator("every-kind", filling), tmp_path / "new")
    timers = by_key(collect_locally(SavepointReader.read(env(), path).read_keyed_state("every-kind", ReadTimers())))
    assert timers == {key: ({5}, {1}) for key in range(KEYS)}


def test_list_union_and_broadcast_state_are_filled(tmp_path):
    class Rules(BroadcastStateBootstrapFunction):
        def process_element(self, value, ctx):
            ctx.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG())).put(str(value), value)

    first = env(3)
    rows = first.from_collection(list(EARLIER), Types.LONG()).rebalance()
    writer = SavepointWriter.new_savepoint(first, 128)
    writer.with_operator("positions", OperatorTransformation.bootstrap_with(rows).transform(FillPositions()))
    writer.with_operator("rules", OperatorTransformation.bootstrap_with(rows).transform(Rules()))
    reader = SavepointReader.read(env(), write(writer, tmp_path / "new"))
    assert sorted(collect_locally(reader.read_list_state("positions", "seen", Types.LONG()))) == list(EARLIER)
    assert sorted(collect_locally(reader.read_union_state("positions", "all"))) == [(n, "seen") for n in EARLIER]
    rules = collect_locally(reader.read_broadcast_state("rules", "rules", Types.STRING(), Types.LONG()))
    assert sorted(rules, key=lambda rule: rule[1]) == [(str(n), n) for n in EARLIER]


def windowed(environment, assigner):
    stream = environment.from_collection(list(EARLIER), Types.LONG())
    timed = OperatorTransformation.bootstrap_with(stream).assign_timestamps(lambda n, _: n)
    return timed.key_by(lambda n: n % KEYS, Types.LONG()).window(assigner)


WINDOWS = {
    "tumbling": (tumbling_reduce, lambda e: windowed(e, TUMBLING).reduce(Larger())),
    "sliding": (sliding_aggregate, lambda e: windowed(e, SLIDING).aggregate(Average())),
    "sessions": (session_process, lambda e: windowed(e, SESSIONS).process(ListSession())),
    "counted": (
        counted_process,
        lambda e: windowed(e, GlobalWindows.create()).trigger(CountTrigger.of(2)).process(ListWindow()),
    ),
    "evicted": (evicted_reduce, lambda e: windowed(e, TUMBLING).evictor(CountEvictor.of(2)).reduce(Larger())),
}


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_that_were_filled_fire_in_the_job_that_restores_them(tmp_path, kind, backend):
    program, transformation = WINDOWS[kind]
    first = env(1)  # the order of the records counts
    path = write(
        SavepointWriter.new_savepoint(first, 128).with_operator("windows", transformation(first)), tmp_path / "new"
    )
    later = restored(partial(program, given=LATER), path, tmp_path, backend=backend, parallelism=1)
    undisturbed = restored(program, None, tmp_path / "whole", parallelism=1)
    if kind == "counted":  # windows that fired with records of the past have emitted nothing
        undisturbed = [record for record in undisturbed if max(record[1]) in LATER]
    assert sorted(map(repr, later)) == sorted(map(repr, undisturbed))


# ------------------------------------------------------------------------------------------- from another savepoint


def test_operators_are_removed_renamed_and_replaced_and_the_others_are_copied(tmp_path):
    old = savepoint_of(every_kind, tmp_path / "old")
    first = env(2)
    writer = SavepointWriter.from_existing_savepoint(first, old)
    writer.remove_operator("every-kind").with_operator("every-kind", filled(first))
    writer.change_operator_identifier("positions", "places").remove_operator("numbers")
    path = write(writer, tmp_path / "new")
    metadata = resolve(path).metadata
    assert {o.uid for o in metadata.operators if o.has_state} == {"places", "every-kind"}
    assert metadata.checkpoint_id == resolve(old).metadata.checkpoint_id and metadata.kind == "savepoint"
    reader, before = SavepointReader.read(env(), path), SavepointReader.read(env(), old)
    seen = sorted(collect_locally(before.read_list_state("positions", "seen", Types.LONG())))
    for path_of_old in Path(old).iterdir():
        path_of_old.unlink()
    assert sorted(collect_locally(reader.read_list_state("places", "seen", Types.LONG()))) == seen
    found = by_key(collect_locally(reader.read_keyed_state("every-kind", ReadEverything())))
    assert {key: sorted(values[1]) for key, values in found.items()} == {
        key: [n for n in EARLIER if n % KEYS == key] for key in range(KEYS)
    }


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_copied_checkpoint_is_a_savepoint_that_restores_to_the_same_job(tmp_path, backend):
    old = checkpoint_of(every_kind, tmp_path / "old", backend=backend, after=4)
    path = write(SavepointWriter.from_existing_savepoint(env(), old), tmp_path / "new")
    assert resolve(path).metadata.kind == "savepoint"
    one, other = (restored(every_kind, p, tmp_path / name, backend=backend) for p, name in ((old, "a"), (path, "b")))
    assert sorted(one) == sorted(other) and one


def test_the_max_parallelism_is_changed_by_filling_the_state_again(tmp_path):
    old = savepoint_of(every_kind, tmp_path / "old")
    with pytest.raises(RestoreError, match="max parallelism"):
        restored(lambda e: every_kind(e.set_max_parallelism(64)), old, tmp_path / "refused")
    first = env(2)
    writer = SavepointWriter.from_existing_savepoint(first, old).remove_operator("every-kind")
    past = OperatorTransformation.bootstrap_with(first.from_collection(list(EARLIER), Types.LONG()))
    again = past.set_max_parallelism(64).key_by(lambda n: n % KEYS).transform(FillEveryKind())
    path = write(writer.with_operator("every-kind", again), tmp_path / "new")
    maxima = {o.uid: o.max_parallelism for o in resolve(path).metadata.operators if o.has_state}
    assert maxima == {"numbers": 128, "positions": 128, "every-kind": 64}


@pytest.mark.parametrize(
    "begin",
    [
        lambda env, backend, _: SavepointWriter.new_savepoint(env, backend, 64),
        lambda env, backend, _: SavepointWriter.new_savepoint(env, 64, state_backend=backend),
        lambda env, backend, path: SavepointWriter.from_existing_savepoint(env, path, backend),
    ],
)
def test_the_backend_may_stand_where_flink_has_it(tmp_path, begin):
    first = env(1)
    old = write(SavepointWriter.new_savepoint(first, 64).with_operator("a", filled(first)), tmp_path / "old")
    second = env(1)
    writer = begin(second, EmbeddedRocksDBStateBackend(), old).with_operator("b", filled(second))
    assert second.job_settings("any").state_backend == "rocksdb"
    maxima = {each.uid: each.max_parallelism for each in resolve(write(writer, tmp_path / "new")).metadata.operators}
    assert maxima["b"] == 64


# --------------------------------------------------------------------------------------------------------- mistakes


def test_a_savepoint_is_never_written_over_another(tmp_path):
    old = savepoint_of(every_kind, tmp_path)
    before = {path: path.read_bytes() for path in Path(old).iterdir()}
    with pytest.raises(CheckpointError, match="already contains a savepoint"):
        write(SavepointWriter.from_existing_savepoint(env(), old), old)
    assert {path: path.read_bytes() for path in Path(old).iterdir()} == before


def test_mistakes_are_refused_where_they_are_made(tmp_path):
    first = env()
    writer = SavepointWriter.new_savepoint(first, 128)
    with pytest.raises(InvalidProgramError, match="a savepoint needs an operator"):
        writer.write(tmp_path / "new")
    writer.with_operator("a", filled(first))
    with pytest.raises(StateError, match="already has an operator with uid 'a'"):
        writer.with_operator("a", filled(first))
    with pytest.raises(StateError, match="has no operator with uid 'b'"):
        writer.remove_operator("b")
    with pytest.raises(InvalidProgramError, match="another environment"):
        writer.with_operator("c", filled(env()))
    with pytest.raises(ValueError, match="max parallelism must be from 1 to 32768"):
        SavepointWriter.new_savepoint(first, 0)
    with pytest.raises(ValueError, match="32 lower-case hex digits"):
        OperatorIdentifier.for_uid_hash("ABC")


def test_a_function_that_fails_leaves_no_savepoint_and_one_that_emits_is_refused(tmp_path):
    class Emits(FillEveryKind):
        def process_element(self, value, ctx):
            yield value

    first = env()
    stream = first.from_collection([1])
    filling = OperatorTransformation.bootstrap_with(stream).key_by(lambda n: n).transform(Emits())
    with pytest.raises(JobExecutionError, match="a bootstrap function emitted 1"):
        write(SavepointWriter.new_savepoint(first, 128).with_operator("a", filling), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_job_that_fails_and_restarts_writes_the_state_once(tmp_path):
    class FailsOnce(FillPositions):
        def snapshot_state(self, context):
            super().snapshot_state(context)
            mark = tmp_path / "failed"
            if mark.exists():
                return
            mark.touch()
            raise RuntimeError("as planned")

    first = without_inline_state(env(2))
    first.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    rows = first.from_collection(list(EARLIER), Types.LONG())
    writer = SavepointWriter.new_savepoint(first, 128).with_operator("every-kind", filled(first))
    writer.with_operator("positions", OperatorTransformation.bootstrap_with(rows).transform(FailsOnce()))
    path = write(writer, tmp_path / "new")
    assert (tmp_path / "failed").exists()
    assert {p.name for p in Path(path).iterdir()} == {"_metadata", *resolve(path).metadata.paths()}, "and no other file"
    reader = SavepointReader.read(env(), path)
    assert sorted(collect_locally(reader.read_list_state("positions", "seen", Types.LONG()))) == list(EARLIER)
    assert len(collect_locally(reader.read_keyed_state("every-kind", ReadEverything()))) == KEYS


def test_an_environment_in_batch_mode_writes_all_keys_and_stays_in_batch_mode(tmp_path):
    first = env(2).set_runtime_mode(RuntimeExecutionMode.BATCH)
    path = write(SavepointWriter.new_savepoint(first, 128).with_operator("every-kind", filled(first)), tmp_path / "new")
    stream = SavepointReader.read(first, path).read_keyed_state("every-kind", ReadEverything())
    assert "BATCH" in repr(first) and len(collect_locally(stream)) == KEYS


def test_a_savepoint_is_signed_with_the_key_of_the_environment(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    settings = Configuration().set_string("ekorn.checkpoint.signing-key-file", str(key))
    first = without_inline_state(StreamExecutionEnvironment.get_execution_environment(settings))
    path = write(SavepointWriter.new_savepoint(first, 128).with_operator("every-kind", filled(first)), tmp_path / "new")
    again = write(SavepointWriter.from_existing_savepoint(first, path), tmp_path / "copy")
    found = resolve(again, read_signing_key(str(key))).metadata
    assert all(file.sha256 for file in found.files() if file.path)


def test_a_stream_without_an_end_is_refused_where_it_is_given():
    endless = env().from_source(DataGeneratorSource(lambda n: n, None), WatermarkStrategy.no_watermarks(), "endless")
    with pytest.raises(InvalidProgramError, match=r"bootstrap_with\(\) waits for the end of the job.*a bounded source"):
        OperatorTransformation.bootstrap_with(endless.map(lambda n: n))


class FillLong(KeyedStateBootstrapFunction):
    """Puts a record into a state of whole numbers."""

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("typed", Types.LONG()))

    def process_element(self, value, ctx):
        self.state.update(value)


def test_a_value_that_its_declared_type_would_change_is_refused(tmp_path):
    first = env(1)
    past = OperatorTransformation.bootstrap_with(first.from_collection([1, 0.5]))
    filled = past.key_by(lambda value: "k").transform(FillLong())
    writer = SavepointWriter.new_savepoint(first, 128).with_operator("typed", filled)
    with (
        on_local_engine(),
        pytest.raises(
            JobExecutionError,
            match=r"state 'typed' is declared as Long and cannot hold 0.5, which would be stored as 0: ",
        ),
    ):
        writer.write(tmp_path / "new")
    assert not (tmp_path / "new" / "_metadata").exists()


@pytest.mark.parametrize(
    ("declared", "value", "fits"),
    [
        (Types.LONG(), 0.5, False),
        (Types.LONG(), 2.0, True),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", 1.5), False),
        (Types.LIST(Types.LONG()), [1, 2.5], False),
        (Types.MAP(Types.STRING(), Types.LONG()), {"a": 0.5}, False),
        (Types.ROW([Types.LONG()]), Row(0.5), False),
        (Types.ROW([Types.LONG()]), Row(None), True),
        (Types.FLOAT(), 0.1, True),
        (Types.DOUBLE(), 1, True),
    ],
)
def test_only_values_that_lose_a_part_of_a_whole_number_are_refused(declared, value, fits):
    codec = ExactCodec("typed", declared)
    if fits:
        assert codec.loaded(codec.stored(value)) == value
    else:
        with pytest.raises(StateError, match=r"state 'typed' is declared as .* and cannot hold .* would be stored as"):
            codec.stored(value)
