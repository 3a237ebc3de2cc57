"""The state of a savepoint is read as data sets and filled from them, with the results of streams."""

from functools import partial

import pytest

from ekorn.common import Types
from ekorn.dataset import ExecutionEnvironment
from ekorn.errors import InvalidProgramError, StateError
from ekorn.state_processor import OperatorTransformation, SavepointReader, SavepointWriter
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.testing import collect_locally, on_local_engine
from tests.state_processor.programs import KEYS, every_kind, restored, savepoint_of
from tests.state_processor.savepoint_functions import (
    EARLIER,
    LATER,
    FillEveryKind,
    ReadEverything,
    by_key,
    env,
    last_by_key,
)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_keyed_state_is_read_as_a_data_set(tmp_path, backend):
    path = savepoint_of(every_kind, tmp_path, backend=backend)
    stream = SavepointReader.read(env(), path).read_keyed_state("every-kind", ReadEverything())
    expected = by_key(collect_locally(stream))
    data_sets = SavepointReader.read(ExecutionEnvironment.get_execution_environment(), path)
    found = data_sets.read_keyed_state("every-kind", ReadEverything())
    assert by_key(collect_locally(found)) == expected and len(expected) > 3
    keys = data_sets.read_keyed_state("every-kind", ReadEverything()).map(lambda record: record[0])
    assert sorted(collect_locally(keys)) == sorted(expected)


def test_operator_state_is_read_as_a_data_set(tmp_path):
    path = savepoint_of(every_kind, tmp_path)
    reader = SavepointReader.read(ExecutionEnvironment.get_execution_environment(), path)
    seen = sorted(collect_locally(reader.read_list_state("positions", "seen", Types.LONG())))
    assert seen and sorted(collect_locally(reader.read_union_state("positions", "all"))) == [(n, "seen") for n in seen]
    with pytest.raises(StateError, match="no operator state 'nothing'"):
        reader.read_list_state("positions", "nothing")


def test_state_is_filled_from_a_data_set(tmp_path):
    data_sets = ExecutionEnvironment.get_execution_environment()
    past = data_sets.from_collection(list(EARLIER), Types.LONG())
    with on_local_engine():
        filled = OperatorTransformation.bootstrap_with(past).key_by(lambda n: n % KEYS).transform(FillEveryKind())
        writer = SavepointWriter.new_savepoint(data_sets, 128).with_operator("every-kind", filled)
        path = writer.write(tmp_path / "new")
    later = restored(partial(every_kind, given=LATER), path, tmp_path)
    assert last_by_key(later) == last_by_key(restored(every_kind, None, tmp_path / "whole"))


def test_settings_made_after_the_data_set_was_computed_count_for_the_savepoint(tmp_path):
    data_sets = ExecutionEnvironment.get_execution_environment()
    past = data_sets.from_collection(list(EARLIER), Types.LONG())
    with on_local_engine():
        filled = OperatorTransformation.bootstrap_with(past).key_by(lambda n: n % KEYS).transform(FillEveryKind())
        data_sets.set_parallelism(3)
        path = SavepointWriter.new_savepoint(data_sets, 128).with_operator("every-kind", filled).write(tmp_path / "new")
    assert open_savepoint(path).operator("every-kind").metadata.parallelism == 3


def test_a_data_set_of_another_environment_is_refused(tmp_path):
    past = ExecutionEnvironment.get_execution_environment().from_collection(list(EARLIER), Types.LONG())
    with on_local_engine():
        filled = OperatorTransformation.bootstrap_with(past).key_by(lambda n: n % KEYS).transform(FillEveryKind())
        for other in (env(), ExecutionEnvironment.get_execution_environment()):
            with pytest.raises(InvalidProgramError, match="another environment"):
                SavepointWriter.new_savepoint(other, 128).with_operator("every-kind", filled)
