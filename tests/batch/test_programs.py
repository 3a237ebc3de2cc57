"""What a DataSet program refuses at the call, and what its plan leaves out."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from ekorn.batch.planner.plan_runner import run_on
from ekorn.batch.program.runner import plans_run_by
from ekorn.common import Row, Types
from ekorn.dataset import Aggregations, ExecutionEnvironment, InputFormat, JoinHint, MapFunction, Order
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing import collect_locally, on_local_engine
from ekorn.testing.local_partitions import LocalRdds, LocalSuperstepEngine
from tests.imports import SOURCE


@pytest.fixture
def env():
    return ExecutionEnvironment.get_execution_environment().set_parallelism(3)


def test_programs_are_drawn_without_spark():
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from ekorn.dataset import ExecutionEnvironment\n"
        "env = ExecutionEnvironment.get_execution_environment()\n"
        "env.from_elements(1, 2).map(lambda x: (x, 1)).group_by(0).sum(1)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(SOURCE.parent)})


# ---------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.group_by(), r"group_by\(\) needs a key"),
        (lambda d: d.group_by(2), r"group_by\(\): 2 is not a field of TupleTypeInfo.*which has 2 fields"),
        (lambda d: d.group_by(-1), r"-1 is not a field"),
        (lambda d: d.group_by("name"), r"'name' is not a field .* f0, f1"),
        (lambda d: d.group_by("f0.f1"), r"records of type String have no fields, so 'f0.f1'"),
        (lambda d: d.group_by("f0..f1"), r"'f0..f1' is not a field"),
        (lambda d: d.group_by(0, lambda r: r), r"takes fields, or one key selector"),
        (lambda d: d.project("f0"), r"project\(\) takes positions of fields, got 'f0'"),
        (lambda d: d.project(0, 5), r"project\(\): 5 is not a field"),
        (lambda d: d.sum(0), r"field 0 is a String, which cannot be summed"),
        (lambda d: d.map(lambda r: r).aggregate("SUM", 0), r"takes Aggregations.SUM, MIN or MAX"),
        (lambda d: d.group_by(lambda r: r).sum(1), r"aggregate\(\) needs groups by fields"),
        (lambda d: d.group_by(lambda r: r).min_by(1), r"min_by\(\) needs groups by fields"),
        (lambda d: d.min_by(), r"min_by\(\) takes positions of fields, got none"),
        (lambda d: d.first(0), r"first\(\) takes a number of records of at least 1, got 0"),
        (lambda d: d.group_by(0).first(-3), r"first\(\) takes a number of records of at least 1"),
        (lambda d: d.group_by(lambda r: r[0]).sort_group(1), r"groups by a key selector are sorted by one selector"),
        (lambda d: d.group_by(0).sort_group(lambda r: r[1]), r"groups by fields by fields"),
        (lambda d: d.group_by(0).sort_group(1, "DESC"), r"takes Order.ASCENDING or Order.DESCENDING"),
        (lambda d: d.sort_partition(0).sort_partition(lambda r: r), r"a key selector cannot be combined"),
        (lambda d: d.partition_by_range(0).with_orders(), r"takes an Order for each of 1 keys"),
        (lambda d: d.group_by(0, 1).with_partitioner(lambda k, n: 0), r"a partitioner works with one key field"),
        (lambda d: d.join(d).where(0, 1).equal_to(0), r"first key has 2 fields \(0, 1\), and the second has 1"),
        (lambda d: d.join(d).where(0).equal_to(1), r"different types, String and Long, so they never match"),
        (lambda d: d.co_group(d).where(0).equal_to(1), r"different types, String and Long, so they never match"),
        (lambda d: d.sample(False, 1.5), r"a fraction must be from 0 to 1"),
        (lambda d: d.sample_with_size(False, -1), r"the number of records must be at least 0"),
        (
            lambda d: d.left_outer_join(d, JoinHint.BROADCAST_HASH_FIRST),
            r"left_outer_join\(\) cannot .* BROADCAST_HASH_F",
        ),
        (lambda d: d.right_outer_join(d, JoinHint.BROADCAST_HASH_SECOND), r"right_outer_join\(\) .* BROADCAST_HASH_S"),
        (lambda d: d.full_outer_join(d, JoinHint.BROADCAST_HASH_SECOND), r"full_outer_join\(\) .* BROADCAST_HASH_S"),
        (lambda d: d.environment.from_elements(), r"from_elements\(\) needs an element"),
        (lambda d: d.environment.generate_sequence(2, 1), r"the end is before the start"),
        (lambda d: d.union(ExecutionEnvironment().from_elements(1)), r"belong to different environments"),
        (lambda d: d.map(lambda r: d.count()), r"captures 'd' \(DataSet\).*collect\(\) it first"),
    ],
)
def test_a_mistake_is_refused_at_the_call(env, call, message):
    with pytest.raises(InvalidProgramError, match=message):
        call(env.from_elements(("a", 1), ("b", 2)))


def test_a_wrong_argument_is_refused_at_the_call(env):
    data_set = env.from_elements(1, 2)
    with pytest.raises(InvalidProgramError, match=r"records of type Long have no fields, so 0 is not a key"):
        data_set.group_by(0)
    with pytest.raises(TypeError, match=r"map\(\) needs a MapFunction or a callable"):
        data_set.map(5)
    with pytest.raises(TypeError, match=r"reduce\(\) calls its function with 2 arguments"):
        data_set.reduce(lambda x: x)
    with pytest.raises(TypeError, match=r"join\(\) takes a DataSet"):
        data_set.join([1])
    with pytest.raises(RuntimeError, match="nothing to execute"):
        env.execute()
    with pytest.raises(InvalidProgramError, match=r"fields of tuples, and the records are Long"):
        data_set.aggregate(Aggregations.MIN, 0)
    rows = env.from_collection([Row("a", 1)], Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()]))
    with pytest.raises(InvalidProgramError, match=r"'nome' is not a field .* \['name', 'n'\]"):
        rows.group_by("nome")


# ---------------------------------------------------------------------------------- keys


@dataclass(frozen=True)
class Address:
    zip: int


@dataclass(frozen=True)
class User:
    name: str
    address: Address


def test_keys_by_name_path_star_and_selector(env):
    users = env.from_elements(User("a", Address(1)), User("b", Address(1)), User("b", Address(1)))

    def names(group):
        return [sorted(user.name for user in group)]

    assert collect_locally(users.group_by("address.zip").reduce_group(names)) == [["a", "b", "b"]]
    assert sorted(collect_locally(users.group_by("name").reduce_group(names))) == [["a"], ["b", "b"]]
    assert sorted(collect_locally(users.group_by("*").reduce_group(names))) == [["a"], ["b", "b"]]
    assert sorted(collect_locally(users.group_by("address.*", "name").reduce_group(names))) == [["a"], ["b", "b"]]
    assert sorted(collect_locally(users.group_by(lambda u: u.name).reduce_group(names))) == [["a"], ["b", "b"]]
    rows = env.from_collection([Row("a", 1), Row("a", 2)], Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.INT()]))
    assert collect_locally(rows.group_by("k").reduce_group(lambda group: [len(list(group))])) == [2]


def test_a_position_on_records_without_positions_is_an_error(env):
    for records in (["abc"], [User("a", Address(1))]):
        unknown = env.from_collection(records).map(lambda record: record)
        with pytest.raises(JobExecutionError, match="has no positions"):
            collect_locally(unknown.group_by(0).reduce_group(list))


class Broken(InputFormat):
    def create_input_splits(self, min_num_splits):
        return [1]

    def open(self, split):
        self.left = 2

    def reached_end(self):
        return False

    def next_record(self):
        self.left -= 1
        return 1 // self.left


def test_an_input_that_fails_is_named_in_the_error(env, tmp_path):
    (tmp_path / "numbers").write_text("1\nx\n")
    for source in (env.read_csv_file(tmp_path / "numbers").types(int), env.create_input(Broken())):
        for used in (source, source.map(lambda x: x), source.group_by("*").first(1)):
            source.name("numbers in")
            with pytest.raises(JobExecutionError, match="in operator 'numbers in'"):
                collect_locally(used)


def test_none_never_matches_in_joins_and_is_refused_in_groups(env):
    left = env.from_elements((None, 1), ("a", 2)).map(lambda r: r)
    right = env.from_elements((None, 3), ("a", 4)).map(lambda r: r)

    def values(one, other):
        return (one and one[1], other and other[1])

    for hint in (JoinHint.OPTIMIZER_CHOOSES, JoinHint.REPARTITION_HASH_FIRST, JoinHint.REPARTITION_SORT_MERGE):
        assert collect_locally(left.join(right, hint).where(0).equal_to(0).using(values)) == [(2, 4)]
        full = left.full_outer_join(right, hint).where(0).equal_to(0).using(values)
        assert sorted(collect_locally(full), key=repr) == [(1, None), (2, 4), (None, 3)]
    for refused in (
        left.group_by(0).first(1),
        left.distinct(0),
        left.partition_by_hash(0),
        left.co_group(right).where(0).equal_to(0).using(lambda a, b: []),
    ):
        with pytest.raises(JobExecutionError, match=r"record \(None, [13]\).*None is not a key"):
            collect_locally(refused)
    with pytest.raises(InvalidProgramError, match="cannot sort its keys"):
        collect_locally(left.partition_by_range(0))


@pytest.mark.parametrize(
    "grouped",
    [
        lambda data: data.group_by(0).sum(1),
        lambda data: data.group_by(0, 1).reduce(max),
        lambda data: data.group_by(0).reduce_group(list),
        lambda data: data.group_by(0).sort_group(1).reduce_group(list),
        lambda data: data.group_by(0).first(1),
        lambda data: data.distinct(0),
    ],
)
def test_none_is_refused_in_groups_that_are_not_shuffled(env, grouped):
    env.set_parallelism(1)
    with pytest.raises(JobExecutionError, match=r"record \(None, 1\).*None is not a key"):
        collect_locally(grouped(env.from_elements(("a", 2), (None, 1)).map(lambda r: r)))


def test_none_that_a_join_let_pass_is_refused_in_groups_after_it(env):
    pairs = env.from_elements((None, 1), ("a", 2)).map(lambda r: r)
    joined = pairs.left_outer_join(pairs).where(0).equal_to(0).using(lambda one, other: one)
    placed = joined.with_forwarded_fields_first("f0")
    for refused in (
        placed.group_by(0).sum(1),
        placed.co_group(placed).where(0).equal_to(0).using(lambda one, other: []),
    ):
        with pytest.raises(JobExecutionError, match=r"record \(None, 1\).*None is not a key"):
            collect_locally(refused)


# ---------------------------------------------------------------------------------- the plan


def shuffles_of(data_set):
    rdds = LocalRdds()
    with plans_run_by(lambda plan, settings: run_on(rdds, LocalSuperstepEngine(), plan, settings, "0" * 32)):
        data_set.collect()
    return rdds.shuffles


def test_groups_and_joins_on_known_partitions_are_not_shuffled(env):
    pairs = env.from_elements(("a", 1), ("b", 2), ("a", 3))
    placed = pairs.partition_by_hash(0)
    assert shuffles_of(pairs.group_by(0).sum(1)) == 1
    assert shuffles_of(placed.filter(lambda r: r[1] > 1).group_by(0).reduce_group(list)) == 1
    assert shuffles_of(placed.group_by(0, 1).reduce_group(list)) == 1
    assert shuffles_of(placed.group_by(1).reduce_group(list)) == 2
    assert shuffles_of(placed.map(lambda r: r).group_by(0).reduce_group(list)) == 2
    assert shuffles_of(placed.project(1, 0).group_by(1).reduce_group(list)) == 1
    assert shuffles_of(placed.sort_partition(1).group_by(0).first(1)) == 1
    assert shuffles_of(pairs.distinct(0).group_by(0).sum(1).group_by(0).max(1)) == 1
    assert shuffles_of(pairs.group_by(0).sum(1).group_by(1).max(0)) == 2
    assert shuffles_of(pairs.partition_by_range(0).group_by(0).sum(1)) == 1
    assert shuffles_of(pairs.group_by(0).with_partitioner(lambda key, count: 0).reduce_group(list)) == 1
    assert shuffles_of(pairs.join(pairs).where(0).equal_to(0)) == 2
    assert shuffles_of(placed.join(placed).where(0).equal_to(0)) == 1
    assert shuffles_of(placed.join(pairs.distinct(0)).where(0).equal_to(0)) == 2
    assert shuffles_of(placed.join(pairs, JoinHint.BROADCAST_HASH_SECOND).where(0).equal_to(0)) == 1
    assert shuffles_of(pairs.set_parallelism(1).group_by(0).reduce_group(list).set_parallelism(1)) == 0


@pytest.mark.parametrize("parallelism", [1, 3, 5])
@pytest.mark.parametrize(
    "reduced",
    [
        lambda groups: groups.reduce(max),
        lambda groups: groups.reduce_group(list),
        lambda groups: groups.first(1),
    ],
)
def test_a_partitioner_of_groups_holds_at_any_parallelism(env, reduced, parallelism):
    groups = env.from_elements(*[(n, n) for n in range(10)]).group_by(0).with_partitioner(lambda key, count: count - 1)
    placed = reduced(groups).set_parallelism(parallelism)
    sizes = placed.map_partition(lambda records: [len(list(records))]).set_parallelism(parallelism)
    assert collect_locally(sizes) == [0] * (parallelism - 1) + [10]


class Seen(MapFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_int_counter("seen")

    def map(self, value):
        self.seen.add()
        return value


def test_a_shared_input_is_computed_once_and_counted_once(env):
    shared = env.generate_sequence(1, 10).map(Seen())
    both = shared.join(shared.filter(lambda x: x > 5)).where("*").equal_to("*").union(shared.cross(shared))
    with on_local_engine():
        assert len(both.collect()) == 105
    result = env.get_last_job_execution_result()
    assert result is not None and result.get_accumulator_result("seen") == 10


def test_the_function_of_a_shared_input_runs_once_for_each_record(env, tmp_path):
    calls = str(tmp_path / "calls")

    def noted(value):
        with open(calls, "a", encoding="utf-8") as file:
            file.write("x")
        return value

    shared = env.generate_sequence(1, 10).map(noted)
    both = shared.union(shared.filter(lambda x: x > 5), shared.partition_by_range("*"), shared.zip_with_index())
    assert len(collect_locally(both)) == 35
    with open(calls, encoding="utf-8") as file:
        assert len(file.read()) == 10


@pytest.mark.parametrize(
    "used",
    [
        lambda one, other: one.union(other).zip_with_index(),
        lambda one, other: one.union(other).partition_by_range("*"),
        lambda one, other: (both := one.union(other)).join(both).where("*").equal_to("*"),
        lambda one, other: one.union(other).map(lambda x: x).set_parallelism(6).zip_with_index().set_parallelism(2),
    ],
)
def test_a_union_and_fewer_partitions_are_computed_once(env, tmp_path, used):
    calls = tmp_path / "calls"

    def noted(value):
        with calls.open("a", encoding="utf-8") as file:
            file.write("x")
        return value

    data = used(env.generate_sequence(1, 5).map(noted), env.generate_sequence(6, 10).map(noted))
    assert len(collect_locally(data)) == 10
    assert len(calls.read_text(encoding="utf-8")) == 10


def test_a_function_given_twice_is_two_objects(env):
    function = Seen()
    with on_local_engine():
        assert sorted(env.generate_sequence(1, 5).map(function).map(function).collect()) == [1, 2, 3, 4, 5]
    result = env.get_last_job_execution_result()
    assert result is not None and result.get_accumulator_result("seen") == 10


def test_a_chain_of_a_thousand_maps(env):
    numbers = env.generate_sequence(1, 3)
    for _ in range(1000):
        numbers = numbers.map(lambda x: x + 1)
    assert sorted(collect_locally(numbers)) == [1001, 1002, 1003]


def test_sorted_partitions_are_sorted_in_both_directions(env):
    numbers = env.from_elements((1, "b"), (2, "a"), (1, "a")).set_parallelism(1)
    ordered = numbers.sort_partition(0, Order.DESCENDING).sort_partition(1).set_parallelism(1)
    assert collect_locally(ordered) == [(2, "a"), (1, "a"), (1, "b")]
