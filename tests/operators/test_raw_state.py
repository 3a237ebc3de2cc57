"""Raw state: bytes that functions write into checkpoints themselves, restored at any parallelism with both backends."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
from raw_program import FILLED, KEYS, RUNS, TELLING, OwnCounts, draw, environment

from ekorn.datastream import CheckpointedFunction
from ekorn.datastream.functions import MapFunction
from ekorn.errors import JobExecutionError, StateError
from ekorn.functions.state.raw_streams import KeyedStateCheckpointOutputStream, OperatorStateCheckpointOutputStream
from ekorn.keygroups import key_group, key_group_range
from ekorn.state.operator_state_files import redistribute
from ekorn.state_processor import SavepointReader
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.state_processor.tools.savepoint_inspection import summaries
from ekorn.testing import collect_locally
from ekorn.testing.scripted import Crash, DriverDied, Script, run_scripted, start_scripted
from tests.driver.savepoint_programs import Ask
from tests.operators.interrupted_jobs import environment as plain_environment
from tests.operators.interrupted_jobs import interrupted, numbers

GOLDEN = Path(__file__).parents[1] / "golden" / "raw"
TOLD = sorted(f"{key}: {FILLED + 1}" for key in KEYS)
LOG = []


@pytest.fixture(autouse=True)
def clean_log():
    LOG.clear()


def checkpoint_of(folder, backend, parallelism=2):
    with pytest.raises(DriverDied):
        script = Script(crashes=[Crash("after-epoch", FILLED + 1)], driver_dies=True)
        start_scripted(draw(environment(folder, parallelism)), script, state_backend=backend)
    return str(max(folder.glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:])).parent)


@pytest.mark.parametrize("parallelism", [1, 2, 3, 16])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_raw_state_is_restored_at_any_parallelism(backend, parallelism, tmp_path):
    path = checkpoint_of(tmp_path / "old", backend)
    restored = draw(environment(tmp_path / "new", parallelism))
    assert sorted(run_scripted(restored, restore_path=path, state_backend=backend).records) == TOLD


class OwnGroups(OwnCounts):
    """Notes which key groups are restored in which subtask."""

    def open(self, runtime_context):
        LOG.append((runtime_context.get_index_of_this_subtask(), self.restored))

    def initialize_state(self, context):
        super().initialize_state(context)
        self.restored = [piece.get_key_group_id() for piece in context.get_raw_keyed_state_inputs()]


@pytest.mark.parametrize("parallelism", [1, 3, 4])
def test_each_subtask_restores_its_own_key_groups_in_order(parallelism, tmp_path):
    path = checkpoint_of(tmp_path / "old", "hashmap")
    env = environment(tmp_path / "new", parallelism)
    run_scripted(draw(env, OwnGroups()), restore_path=path)
    groups = sorted({key_group(key, 16) for key in KEYS})
    ranges = [key_group_range(16, parallelism, index) for index in range(parallelism)]
    expected = [(index, [g for g in groups if first <= g <= last]) for index, (first, last) in enumerate(ranges)]
    assert sorted(LOG)[:parallelism] == expected


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_raw_state_is_part_of_savepoints(backend, native, tmp_path):
    ask = Ask(str(tmp_path / "savepoints"), native=native)
    run_scripted(draw(environment(tmp_path / "old", 2)), Script(deeds={FILLED - 1: ask}), state_backend=backend)
    path = ask.path
    restored = run_scripted(draw(environment(tmp_path / "new", 3)), restore_path=path, state_backend=backend)
    assert sorted(restored.records) == TOLD


@pytest.mark.parametrize("turns", [None, 1])
@pytest.mark.parametrize("point", ["in-epoch", "after-epoch", "after-notify"])
def test_raw_state_survives_a_crash(point, turns, tmp_path):
    script = Script(crashes=[Crash(point, FILLED)], turns=turns)
    assert sorted(run_scripted(draw(environment(tmp_path, 2)), script).records) == TOLD


@pytest.mark.parametrize("parallelism", [1, 3])
def test_an_old_checkpoint_with_raw_state_is_restored(parallelism, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(GOLDEN, copy)
    (checkpoint,) = copy.glob("chk-*")
    run = run_scripted(draw(environment(tmp_path / "new", parallelism)), restore_path=str(checkpoint))
    assert sorted(run.records) == json.loads((GOLDEN / "expected.json").read_text()) == TOLD


def test_the_state_processor_lists_raw_state_as_bytes(tmp_path):
    path = checkpoint_of(tmp_path, "hashmap")
    reader = SavepointReader.read(environment(tmp_path / "read", 2), path)
    pieces = collect_locally(reader.read_raw_keyed_state("own"))
    counts = {key: count for _, content in pieces for key, count in pickle.loads(content).items()}
    assert set(counts) == set(KEYS) and len({group for group, _ in pieces}) == len(pieces)
    partitions = collect_locally(reader.read_raw_operator_state("own"))
    assert sum(json.loads(each)["records"] for each in partitions) == sum(counts.values())
    own = {each.info.name: each for each in summaries(open_savepoint(path).operator("own"), sample=1)}
    assert own["_raw/operator"].info.summary == "raw-operator of bytes"
    assert own["_raw/operator"].sample[0].startswith('b\'{"records"')
    assert own["_raw/keyed"].sample[0].startswith("key group ")
    with pytest.raises(StateError, match="has no raw-keyed state"):
        reader.read_raw_keyed_state("records")


class Partitions(MapFunction, CheckpointedFunction):
    """Writes three partitions in each subtask."""

    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()
        LOG.append((self.index, self.found))

    def initialize_state(self, context):
        assert context.get_raw_keyed_state_inputs() == []
        self.found = [each.get_stream().read().decode() for each in context.get_raw_operator_state_inputs()]

    def snapshot_state(self, context):
        out = context.get_raw_operator_state_output()
        for number in range(3):
            out.start_new_partition()
            out.write(f"{self.index}.{number}".encode())
        assert out.get_number_of_partitions() == 3
        self.out = out

    def map(self, value):
        return value


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [
        (1, [["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]]),
        (2, [["0.0", "0.1", "0.2"], ["1.0", "1.1", "1.2"]]),
        (4, [["0.0", "0.1"], ["0.2", "1.0"], ["1.1"], ["1.2"]]),
    ],
)
def test_partitions_of_raw_operator_state_are_distributed_evenly(parallelism, expected, tmp_path):
    def partitioned(env):
        return numbers(env, splits=2).map(Partitions()).uid("partitions")

    path = interrupted(tmp_path / "old", partitioned, 2)
    LOG.clear()
    run_scripted(partitioned(plain_environment(tmp_path / "new", parallelism)), restore_path=path)
    assert [found for _, found in sorted(LOG)] == expected


class WritesKeyedWithoutKeys(Partitions):
    def snapshot_state(self, context):
        context.get_raw_keyed_operator_state_output()


class WritesNothing(Partitions):
    def snapshot_state(self, context):
        pass


def test_a_checkpoint_has_only_the_raw_state_that_was_written_for_it(tmp_path):
    def with_function(function):
        return lambda env: numbers(env, count=40, splits=2).map(function).uid("partitions")

    path = interrupted(tmp_path / "one", with_function(Partitions()), 2)
    path = interrupted(tmp_path / "two", with_function(WritesNothing()), 2, restore_path=path)
    LOG.clear()
    run_scripted(with_function(Partitions())(plain_environment(tmp_path / "new", 2)), restore_path=path)
    assert sorted(LOG)[:2] == [(0, []), (1, [])]


def test_raw_keyed_state_on_a_stream_without_keys_is_refused(tmp_path):
    env = plain_environment(tmp_path)
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(0)
    stream = numbers(env).map(WritesKeyedWithoutKeys())
    with pytest.raises(JobExecutionError, match="raw keyed state needs a keyed stream"):
        run_scripted(stream)


def test_a_key_group_of_another_subtask_and_one_that_was_started_are_refused():
    out = KeyedStateCheckpointOutputStream(range(4, 8), key_group_of=hash)
    with pytest.raises(StateError, match="call start_new_key_group"):
        out.write(b"x")
    with pytest.raises(StateError, match="key groups 4 to 7, not 8"):
        out.start_new_key_group(8)
    out.start_new_key_group(5)
    out.write(b"x")
    out.write(b"y")
    with pytest.raises(StateError, match="5 was started before"):
        out.start_new_key_group(5)
    assert out.by_key_group() == [(5, b"xy")]


def test_a_stream_is_closed_after_the_snapshot():
    out = OperatorStateCheckpointOutputStream()
    out.write(b"first")
    out.close()
    with pytest.raises(StateError, match="until snapshot_state returns"):
        out.start_new_partition()


def test_the_program_of_the_golden_file_tells_the_same_undisturbed(tmp_path):
    assert sorted(run_scripted(draw(environment(tmp_path, 2))).records) == TOLD
    assert len(RUNS) == FILLED and len(TELLING) == len(KEYS)
    assert redistribute([], 1, 0) == {}
