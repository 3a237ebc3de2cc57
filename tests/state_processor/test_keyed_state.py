"""Keyed state is read from savepoints and checkpoints of both backends, in every format."""

from dataclasses import replace

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Types
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import JobExecutionError, StateError, StateMigrationError
from ekorn.state_processor import KeyedStateReaderFunction, OperatorIdentifier, SavepointReader
from ekorn.state_processor.reading.savepoint_reader import KeyedStateSource
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.testing import collect_locally
from ekorn.testing.scripted import Crash, Script, run_scripted
from tests.driver.savepoint_programs import environment
from tests.state_processor.programs import (
    FAR_MS,
    KEYS,
    EveryKind,
    checkpoint_of,
    descriptors,
    every_kind,
    numbers,
    restored,
    savepoint_of,
)
from tests.state_processor.savepoint_functions import ReadEverything, ReadTimers, by_key, env


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_every_kind_of_state_is_read_as_the_operator_wrote_it(tmp_path, backend, native):
    path = savepoint_of(every_kind, tmp_path, backend=backend, native=native)
    stream = SavepointReader.read(env(), path).read_keyed_state("every-kind", ReadEverything())
    found = by_key(collect_locally(stream))
    assert sorted(found) == list(range(KEYS))
    for key, (total, listed, entries, largest, average, fresh) in found.items():
        assert listed and all(n % KEYS == key for n in listed)
        assert (total, largest, average) == (sum(listed), max(listed), sum(listed) / len(listed))
        assert entries == tuple(sorted((str(n), n) for n in listed)) and fresh in listed


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_incremental_checkpoints_are_read(tmp_path, backend):
    newest = checkpoint_of(every_kind, tmp_path, backend=backend)
    stream = SavepointReader.read(env(3), newest).read_keyed_state("every-kind", ReadEverything())
    assert sorted(by_key(collect_locally(stream))) == list(range(KEYS))


def test_timers_of_both_domains_are_read_by_key(tmp_path):
    path = savepoint_of(every_kind, tmp_path)
    reader = SavepointReader.read(env(), path)
    listed = by_key(collect_locally(reader.read_keyed_state("every-kind", ReadEverything())))
    timers = by_key(collect_locally(reader.read_keyed_state("every-kind", ReadTimers())))
    assert {key: event for key, (event, _) in timers.items()} == {
        key: {FAR_MS + n for n in values[1]} for key, values in listed.items()
    }
    assert {key: clock for key, (_, clock) in timers.items()} == {k: {FAR_MS} if k == 0 else set() for k in range(KEYS)}


def test_a_key_is_read_if_one_of_the_registered_states_has_it(tmp_path):
    class ReadRare(KeyedStateReaderFunction):
        def open(self, runtime_context):
            self.rare = runtime_context.get_state(ValueStateDescriptor("rare"))

        def read_key(self, key, ctx):
            yield key, self.rare.value()["seen"] % KEYS

    path = savepoint_of(every_kind, tmp_path)
    reader = SavepointReader.read(env(), path)
    assert collect_locally(reader.read_keyed_state("every-kind", ReadRare())) == [(3, 3)]
    filtered = reader.read_keyed_state("every-kind", ReadEverything(), key_filter=lambda key: key > 2)
    assert sorted(by_key(collect_locally(filtered))) == [3, 4]


class OpenedOnce(ReadEverything):
    """A function that counts how many of its kind are open, and has many records for each key."""

    now = most = 0

    def open(self, runtime_context):
        assert not hasattr(self, "states"), "each part has a function of its own"
        super().open(runtime_context)
        OpenedOnce.now += 1
        OpenedOnce.most = max(OpenedOnce.most, OpenedOnce.now)

    def read_key(self, key, ctx):
        yield from ((key, n) for n in range(1000))

    def close(self):
        OpenedOnce.now -= 1


def test_a_subtask_reads_its_parts_one_after_another(tmp_path):
    path = savepoint_of(every_kind, tmp_path, parallelism=4)
    stream = SavepointReader.read(env(1), path).read_keyed_state("every-kind", OpenedOnce())
    assert sorted(collect_locally(stream)) == [(key, n) for key in range(KEYS) for n in range(1000)]
    assert (OpenedOnce.now, OpenedOnce.most) == (0, 1)


def test_an_operator_is_found_by_its_id_and_the_savepoint_is_not_changed(tmp_path):
    path = savepoint_of(every_kind, tmp_path)
    reader = SavepointReader.read(env(1), f"{path}/_metadata")
    by_hash = OperatorIdentifier.for_uid_hash(OperatorIdentifier.for_uid("every-kind").operator_id)
    before = restored(every_kind, path, tmp_path / "one")
    assert len(collect_locally(reader.read_keyed_state(by_hash, ReadEverything()))) == KEYS
    assert restored(every_kind, path, tmp_path / "other") == before


def test_an_unknown_operator_and_an_unknown_state_are_named_with_what_there_is(tmp_path):
    path = savepoint_of(every_kind, tmp_path)
    reader = SavepointReader.read(env(), path)
    with pytest.raises(StateError, match=r"no operator with uid 'nobody'; it has .*uid 'every-kind'"):
        reader.read_keyed_state("nobody", ReadEverything())

    class ReadUnknown(ReadEverything):
        def open(self, runtime_context):
            self.states = runtime_context.get_state(ValueStateDescriptor("unknown"))

    with pytest.raises(JobExecutionError, match=r"has no keyed state 'unknown'; it has .*'value'"):
        collect_locally(reader.read_keyed_state("every-kind", ReadUnknown()))


def test_another_type_of_keys_is_refused(tmp_path):
    def typed(env):
        return numbers(env).key_by(lambda n: n % KEYS, Types.LONG()).process(EveryKind()).uid("every-kind")

    reader = SavepointReader.read(env(), savepoint_of(typed, tmp_path))
    assert len(collect_locally(reader.read_keyed_state("every-kind", ReadEverything(), Types.LONG()))) == KEYS
    with pytest.raises(StateMigrationError, match="the type of the key was LONG and is STRING"):
        reader.read_keyed_state("every-kind", ReadEverything(), Types.STRING())


def test_a_state_that_is_asked_for_after_open_is_refused(tmp_path):
    class ReadLate(ReadTimers):
        def open(self, runtime_context):
            super().open(runtime_context)
            self.context = runtime_context

        def read_key(self, key, ctx):
            yield self.context.get_state(descriptors()["rare"]).value()

    path = savepoint_of(every_kind, tmp_path)
    with pytest.raises(JobExecutionError, match=r"'rare' is requested after open\(\)"):
        collect_locally(SavepointReader.read(env(), path).read_keyed_state("every-kind", ReadLate()))


def test_a_reader_that_fails_and_restarts_reads_each_key_once(tmp_path):
    path = savepoint_of(every_kind, tmp_path)
    stream = SavepointReader.read(environment(tmp_path / "reading", restarts=1), path).read_keyed_state(
        "every-kind", ReadEverything()
    )
    run = run_scripted(stream, Script(checkpoints=[True], crashes=[Crash("after-epoch", 1)]))
    assert sorted(by_key(run.records)) == list(range(KEYS))


def test_a_part_that_is_read_again_has_the_entries_that_expired_in_between(tmp_path):
    class ReadFresh(KeyedStateReaderFunction):
        def open(self, runtime_context):
            self.fresh = runtime_context.get_state(descriptors()["ttl"])

        def read_key(self, key, ctx):
            if self.fresh.value() is not None:
                yield key

    stored = open_savepoint(savepoint_of(every_kind, tmp_path)).operator("every-kind")
    clock = ManualClock(1_000)

    def read(source):
        return [key for part in range(source.part_count()) for key in source.read_part(part, 0)]

    source = KeyedStateSource(stored, ReadFresh(), on_rocksdb=None, key_filter=None, clock=clock)
    first = read(source)
    clock.advance(200_000 * 86_400_000)  # twice the time to live
    assert sorted(first) == list(range(KEYS)) and read(source) == first
    later = KeyedStateSource(stored, ReadFresh(), on_rocksdb=None, key_filter=None, clock=clock)
    assert read(later) == [], "as of the time at which the source was made"


def test_the_credentials_of_an_address_are_not_shown(tmp_path):
    stored = open_savepoint(savepoint_of(every_kind, tmp_path))
    stored = replace(stored, address="s3://key:hidden@bucket/savepoint")
    assert "hidden" not in f"{stored!r} {stored.operator('every-kind')!r}"
