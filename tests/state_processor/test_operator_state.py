"""Operator state is read from savepoints: lists of all subtasks, one union, one copy of a broadcast map."""

import pytest

from ekorn.common import Types
from ekorn.errors import JobExecutionError, StateError
from ekorn.state_processor import SavepointReader
from ekorn.testing import collect_locally
from tests.state_processor.programs import every_kind, savepoint_of
from tests.state_processor.savepoint_functions import env


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return savepoint_of(every_kind, tmp_path_factory.mktemp("state"))


def test_list_union_and_broadcast_state_are_read(path):
    reader = SavepointReader.read(env(), path)
    seen = sorted(collect_locally(reader.read_list_state("positions", "seen", Types.LONG())))
    assert seen and len(set(seen)) == len(seen), "the elements of both subtasks"
    union = collect_locally(reader.read_union_state("positions", "all"))
    assert sorted(union) == [(n, "seen") for n in seen], "each element once"
    rules = reader.read_broadcast_state("positions", "rules", Types.STRING(), Types.LONG())
    assert collect_locally(rules) == [("limit", 7)], "one copy"


def test_the_position_of_a_source_is_read_too(path):
    splits = collect_locally(SavepointReader.read(env(), path).read_list_state("numbers", "_splits"))
    assert sorted(split[0] for split in splits) == ["split-0", "split-1"]


def test_a_wrong_name_and_a_wrong_kind_are_refused(path):
    reader = SavepointReader.read(env(), path)
    with pytest.raises(StateError, match=r"no operator state 'nothing'; it has 'all', 'rules', 'seen'"):
        reader.read_list_state("positions", "nothing")
    with pytest.raises(JobExecutionError, match="list-union"):
        collect_locally(reader.read_list_state("positions", "all"))
