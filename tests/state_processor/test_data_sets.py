"""The state of a savepoint is read as data sets, with the results of streams."""

import pytest

from tamias.common import Types
from tamias.dataset import ExecutionEnvironment
from tamias.errors import StateError
from tamias.state_processor import SavepointReader
from tamias.testing import collect_locally
from tests.state_processor.programs import every_kind, savepoint_of
from tests.state_processor.savepoint_functions import ReadEverything, by_key, env


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
