"""Annotations of fields: what they save, what is refused, and how a lie is found."""

from dataclasses import dataclass

import pytest

from ekorn.batch.planner.plan_runner import run_on
from ekorn.batch.program.runner import plans_run_by
from ekorn.common import Types
from ekorn.dataset import (
    ExecutionEnvironment,
    GroupReduceFunction,
    forwarded_fields,
    forwarded_fields_first,
    forwarded_fields_second,
    non_forwarded_fields,
    read_fields,
)
from ekorn.datastream.functions import JoinFunction, MapFunction
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing import check_annotations
from ekorn.testing.local_partitions import LocalRdds, LocalSuperstepEngine

PAIRS = [("a", 1), ("b", 2), ("a", 3), ("c", 4)]


@pytest.fixture
def env():
    return ExecutionEnvironment().set_parallelism(3)


def shuffled(data_set):
    """Run a data set in process; return how many shuffles it took, and its records."""
    rdds = LocalRdds()
    with plans_run_by(lambda plan, settings: run_on(rdds, LocalSuperstepEngine(), plan, settings, "0" * 32)):
        records = sorted(data_set.collect())
    return rdds.shuffles, records


@forwarded_fields("f0")
class Doubled(MapFunction):
    def map(self, value):
        return value[0], value[1] * 2


@forwarded_fields("f1->f0; f0->f1")
class Swapped(MapFunction):
    def map(self, value):
        return value[1], value[0]


@non_forwarded_fields("f1")
class Increased(MapFunction):
    def map(self, value):
        return value[0], value[1] + 1


@forwarded_fields("f0")
class Largest(GroupReduceFunction):
    def reduce(self, values):
        return [max(values)]


def largest(data_set, key):
    return data_set.group_by(key).reduce_group(lambda group: [max(group)])


@pytest.mark.parametrize(
    ("how", "key", "shuffles"),
    [
        (lambda pairs: pairs.map(lambda x: (x[0], x[1] * 2)), 0, 2),
        (lambda pairs: pairs.map(Doubled()), 0, 1),
        (lambda pairs: pairs.map(Increased()), 0, 1),
        (lambda pairs: pairs.map(Swapped()), 1, 1),
        (lambda pairs: pairs.map(Swapped()), 0, 2),
        (lambda pairs: pairs.map(lambda x: (x[0], -x[1])).with_forwarded_fields("f0"), 0, 1),
        (lambda pairs: pairs.group_by(0).reduce_group(Largest()), 0, 1),
        (lambda pairs: pairs.map(forwarded_fields("*")(lambda x: x)), 0, 1),
    ],
)
def test_a_group_on_copied_fields_is_not_shuffled_again(env, how, key, shuffles):
    partitioned = env.from_collection(PAIRS).partition_by_hash(0)
    count, records = shuffled(largest(how(partitioned), key))
    assert count == shuffles
    assert records == shuffled(largest(how(env.from_collection(PAIRS)), key))[1]


@non_forwarded_fields("f1")
class Levelled(MapFunction):
    def map(self, value):
        return value[0], 0


@pytest.mark.parametrize("key", [1, "f1"])
def test_a_changed_field_is_changed_by_position_and_by_name(env, key):
    pairs = env.from_collection([(n, n) for n in range(20)]).map(lambda x: x)
    levelled = pairs.partition_by_hash(key).map(Levelled())
    assert shuffled(levelled.group_by(key).reduce_group(lambda group: [len(list(group))])) == (2, [20])


@forwarded_fields_first("f0")
@forwarded_fields_second("f1->f2")
class Joined(JoinFunction):
    def join(self, first, second):
        return first[0], first[1], second[1]


def test_a_join_on_copied_fields_and_a_group_after_it_share_a_shuffle(env):
    left = env.from_collection(PAIRS).partition_by_hash(0).map(Doubled())
    right = env.from_collection([("a", 10), ("c", 30)])
    joined = left.join(right).where(0).equal_to(0).with_(Joined())
    count, records = shuffled(joined.group_by(0).reduce_group(lambda group: [max(group)]))
    assert count == 2  # one of each input
    assert records == [("a", 6, 10), ("c", 8, 30)]


@dataclass
class Person:
    name: str
    age: int


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda pairs: pairs.map(lambda x: x).with_forwarded_fields("f7"), "f7.*2 fields"),
        (lambda pairs: pairs.map(lambda x: x).with_forwarded_fields("f0->"), "a field is missing"),
        (lambda pairs: pairs.map(lambda x: x).with_forwarded_fields_first("f0"), "no function of two inputs"),
        (lambda pairs: pairs.rebalance().with_forwarded_fields("f0"), "no function of one input"),
        (lambda pairs: pairs.map(Doubled()).with_forwarded_fields("f1"), "already declares forwarded fields"),
        (
            lambda pairs: pairs.map(lambda x: x, Types.TUPLE([Types.LONG(), Types.LONG()])).with_forwarded_fields("f0"),
            "type String to one of type Long",
        ),
    ],
)
def test_an_annotation_that_does_not_fit_is_refused_at_the_call(env, wrong, message):
    with pytest.raises(InvalidProgramError, match=message):
        wrong(env.from_collection(PAIRS))


def test_an_annotation_of_a_class_that_does_not_fit_is_refused_before_anything_runs(env):
    numbers = env.from_elements(1, 2)
    for annotate in (forwarded_fields("f0"), non_forwarded_fields("f0"), read_fields("f0")):
        with pytest.raises(InvalidProgramError, match="no fields"):
            numbers.map(annotate(lambda x: x)).collect()
    with pytest.raises(InvalidProgramError, match="need an output of the input's type"):
        env.from_collection(PAIRS).map(Increased(), Types.STRING()).collect()


def test_forwarded_and_non_forwarded_fields_exclude_each_other():
    with pytest.raises(ValueError, match="choose one"):
        forwarded_fields("f0")(non_forwarded_fields("f1")(lambda x: x))
    with pytest.raises(TypeError, match="takes fields"):
        forwarded_fields()


@forwarded_fields("name")
class Renamed(MapFunction):
    def map(self, value):
        return Person(value.name.upper(), value.age)


@forwarded_fields("f0")
class Misplaced(MapFunction):
    def map(self, value):
        return "z", value[1]


@forwarded_fields("f0")
class Mixed(GroupReduceFunction):
    def reduce(self, values):
        values = list(values)
        return [(value[0] + "!" * (len(values) > 1), 0) for value in values]


@pytest.mark.parametrize(
    "lying",
    [
        lambda env: env.from_collection(PAIRS).map(forwarded_fields("f1")(lambda x: (x[0], x[1] + 1))),
        lambda env: env.from_collection(PAIRS).flat_map(forwarded_fields("*")(lambda x: [x, (x[0], 0)])),
        lambda env: env.from_collection(PAIRS).map(non_forwarded_fields("f1")(lambda x: ("z", x[1]))),
        lambda env: env.from_elements(Person("a", 1)).map(Renamed()),
        lambda env: env.from_collection(PAIRS).group_by(0).reduce_group(Mixed()),
        lambda env: (
            env.from_collection(PAIRS)
            .join(env.from_collection(PAIRS))
            .where(0)
            .equal_to(0)
            .with_(lambda a, b: (b[1], a[1]))
            .with_forwarded_fields_second("f1")
        ),
        lambda env: env.from_collection(PAIRS).iterate(2, lambda data: data.map(Misplaced())),
        lambda env: env.from_collection(PAIRS).iterate_delta(
            env.from_collection(PAIRS), 2, 0, step=lambda solution, work: (work.map(Misplaced()), work)
        ),
    ],
)
def test_a_lie_is_found_with_the_records_that_show_it(env, lying):
    with pytest.raises(JobExecutionError, match=r"annotation of forwarded fields .* is not true: the function got"):
        check_annotations(lying(env))


def test_true_annotations_pass(env):
    pairs = env.from_collection(PAIRS)
    check_annotations(pairs.map(Doubled()).map(Swapped()).map(Swapped()).map(Increased()))
    check_annotations(pairs.group_by(0).reduce_group(Largest()))
    check_annotations(pairs.join(pairs).where(0).equal_to(0).with_(Joined()))
    check_annotations(
        pairs.iterate(2, lambda data: data.map(Doubled()).join(pairs).where(0).equal_to(0).with_(Joined()))
    )


def test_the_missing_side_of_an_outer_join_copies_nothing(env):
    joined = env.from_collection(PAIRS).left_outer_join(env.from_elements(("a", 7))).where(0).equal_to(0)
    described = joined.with_(lambda one, other: (one[0], other and other[1]))
    check_annotations(described.with_forwarded_fields_first("f0").with_forwarded_fields_second("f1"))
