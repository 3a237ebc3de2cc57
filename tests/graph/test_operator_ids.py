"""The operator ids under which state is saved."""

import re
import subprocess
import sys

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import InvalidProgramError
from ekorn.graph.operator_ids import id_of_uid


def same(x):
    return x


def ids(draw, **configuration):
    env = StreamExecutionEnvironment(Configuration.from_dict(configuration))
    draw(env)
    return [operator.id for vertex in env.job_graph("job").vertices for operator in vertex.operators]


def one_branch(env):
    env.from_collection([1]).map(same).key_by(same).reduce(lambda a, b: a).print()


def test_an_id_is_32_hex_digits_and_unique():
    found = ids(one_branch)
    assert len(set(found)) == len(found) == 4
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in found)


def test_the_same_program_gives_the_same_ids():
    assert ids(one_branch) == ids(one_branch)


def test_ids_do_not_depend_on_the_process():
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from tests.graph.test_operator_ids import ids, one_branch\n"
        "print(*ids(one_branch))"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert found.stdout.split() == ids(one_branch)


def test_names_parallelism_and_chaining_do_not_change_ids():
    def tuned(env):
        env.disable_operator_chaining().set_parallelism(3)
        stream = env.from_collection([2, 3]).name("n").map(str).set_parallelism(2).key_by(lambda x: x)
        stream.reduce(lambda a, b: b).name("r").print().name("p")

    assert sorted(ids(tuned)) == sorted(ids(one_branch))


def test_a_branch_added_at_the_end_leaves_the_others_alone():
    def two_branches(env):
        one_branch(env)
        env.from_collection([1]).filter(bool).print()

    assert set(ids(one_branch)) < set(ids(two_branches))


def test_an_operator_before_changes_the_ids_after_it():
    def longer(env):
        env.from_collection([1]).filter(bool).map(same).key_by(same).reduce(lambda a, b: a).print()

    assert set(ids(one_branch)) & set(ids(longer)) == {ids(one_branch)[0]}


def test_twins_are_told_apart():
    def twins(env):
        source = env.from_collection([1])
        source.map(same)
        source.map(same)

    assert len(set(ids(twins))) == 3


def test_a_uid_decides_alone():
    def early(env):
        env.from_collection([1]).map(same).uid("mine")

    def late(env):
        env.from_collection([1]).filter(bool).rebalance().map(same).uid("mine").set_parallelism(2)

    assert ids(early)[1] == ids(late)[2] == id_of_uid("mine")


def test_a_uid_hash_is_taken_as_it_is():
    given = "0123456789abcdef0123456789abcdef"

    def hashed(env):
        env.from_collection([1]).map(same).uid("mine").set_uid_hash(given)

    assert ids(hashed)[1] == given


@pytest.mark.parametrize("given", ["", "xyz", "0123456789ABCDEF0123456789ABCDEF", "0" * 31, None])
def test_a_uid_hash_is_checked_where_it_is_written(given):
    with pytest.raises(ValueError, match="32 lower-case hex digits"):
        StreamExecutionEnvironment().from_collection([1]).set_uid_hash(given)


@pytest.mark.parametrize("given", ["", None, 5])
def test_a_uid_is_checked_where_it_is_written(given):
    with pytest.raises(ValueError, match="uid"):
        StreamExecutionEnvironment().from_collection([1]).uid(given)


def test_a_uid_given_twice_names_both_operators():
    def twice(env):
        env.from_collection([1]).map(same).uid("same").filter(bool).uid("same")

    with pytest.raises(
        InvalidProgramError, match=r"'same' is given twice, to operator 'Map' .* and to operator 'Filter'"
    ):
        ids(twice)


def test_a_uid_hash_that_is_anothers_id_is_refused():
    def clash(env):
        env.from_collection([1]).map(same).uid("a").filter(bool).set_uid_hash(id_of_uid("a"))

    with pytest.raises(InvalidProgramError, match="belongs to both"):
        ids(clash)


def test_without_generated_uids_all_operators_need_one():
    with pytest.raises(InvalidProgramError, match=r"4 operators have no uid: operator 'Source: Collection Source'"):
        ids(one_branch, **{"pipeline.auto-generate-uids": "false"})

    def complete(env):
        env.from_collection([1]).uid("s").map(same).uid("m").print().uid("p")

    assert len(ids(complete, **{"pipeline.auto-generate-uids": "false"})) == 3
