"""Data sets that a function reads whole."""

import weakref

import pytest

from ekorn.batch.tasks.task_context import BroadcastVariables, shared_name
from ekorn.dataset import BroadcastVariableInitializer, ExecutionEnvironment
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import MapFunction, ReduceFunction
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing import collect_locally


class Adding(MapFunction):
    def __init__(self, name="numbers"):
        self.name = name

    def open(self, runtime_context):
        self.sum = sum(runtime_context.get_broadcast_variable(self.name))

    def map(self, value):
        return value + self.sum


class Names(BroadcastVariableInitializer):
    def initialize_broadcast_variable(self, data):
        return dict(data)


class Naming(MapFunction):
    def __init__(self, initializer):
        self.initializer = initializer

    def open(self, runtime_context):
        self.names = runtime_context.get_broadcast_variable_with_initializer("names", self.initializer)

    def map(self, value):
        return self.names[value], id(self.names)


@pytest.fixture
def env():
    return ExecutionEnvironment().set_parallelism(3)


def test_every_subtask_reads_all_records(env):
    numbers = env.generate_sequence(1, 4).map(lambda x: x * 10)
    added = env.generate_sequence(1, 5).map(Adding()).with_broadcast_set(numbers, "numbers")
    assert sorted(collect_locally(added)) == [101, 102, 103, 104, 105]


def test_an_empty_variable_and_a_later_one_of_the_same_name(env):
    ones = env.from_elements(1, 1, 1)
    empty = ones.filter(lambda x: x > 1)
    added = env.from_elements(5).map(Adding()).with_broadcast_set(ones, "numbers").with_broadcast_set(empty, "numbers")
    assert collect_locally(added) == [5]


@pytest.mark.parametrize("initializer", [Names(), dict])
def test_an_initializer_runs_once_for_all_subtasks_of_a_process(env, initializer):
    names = env.from_elements((1, "a"), (2, "b"), (3, "c"))
    named = env.from_elements(1, 2, 3).map(Naming(initializer)).with_broadcast_set(names, "names")
    found = collect_locally(named)
    assert sorted(name for name, _ in found) == ["a", "b", "c"]
    assert len({made for _, made in found}) == 1


def test_an_operator_with_groups_reads_variables_before_and_after_the_shuffle(env):
    class Sum(ReduceFunction):
        def open(self, runtime_context):
            self.weight = runtime_context.get_broadcast_variable("weight")[0]

        def reduce(self, first, second):
            return first[0], first[1] + self.weight * second[1]

    pairs = env.from_elements(*[(key, 1) for key in "abab"])
    sums = pairs.group_by(0).reduce(Sum()).with_broadcast_set(env.from_elements(1), "weight")
    assert sorted(collect_locally(sums)) == [("a", 2), ("b", 2)]


def test_an_unknown_variable_is_named_with_the_known_ones(env):
    numbers = env.generate_sequence(1, 4)
    wrong = env.from_elements(1).map(Adding("numbes")).with_broadcast_set(numbers, "numbers")
    with pytest.raises(JobExecutionError, match=r"no broadcast variable 'numbes', only 'numbers'"):
        collect_locally(wrong)


def test_what_cannot_be_broadcast_is_refused(env):
    numbers = env.generate_sequence(1, 4)
    with pytest.raises(TypeError, match="takes a DataSet"):
        numbers.map(Adding()).with_broadcast_set([1], "numbers")
    with pytest.raises(ValueError, match="name"):
        numbers.map(Adding()).with_broadcast_set(numbers, "")
    with pytest.raises(InvalidProgramError, match="different environments"):
        numbers.map(Adding()).with_broadcast_set(ExecutionEnvironment().from_elements(1), "numbers")


def test_a_stream_has_no_broadcast_variables():
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1]).map(Adding())
    with pytest.raises(JobExecutionError, match="streams have no broadcast variables, such as 'numbers'"):
        collect_locally(stream)


def test_an_operator_without_a_function_has_no_variables(env):
    numbers = env.from_elements(1, 2)
    for refused in (numbers, numbers.union(numbers), numbers.join(numbers).where("*").equal_to("*")):
        with pytest.raises(InvalidProgramError, match="has no function that could read a variable"):
            refused.with_broadcast_set(numbers, "numbers")


def test_a_variable_is_not_made_from_the_operator_that_reads_it(env):
    added = env.from_elements(1, 2).map(Adding())
    for made in (added, added.filter(lambda x: x > 1).union(env.from_elements(3))):
        with pytest.raises(InvalidProgramError, match=r"is derived from Map at .*, which therefore cannot wait"):
            added.with_broadcast_set(made, "numbers")


class Structure:
    def __init__(self, records):
        self.records = records


def test_what_an_initializer_made_is_freed_when_the_variable_changes():
    def of_superstep(records):
        return BroadcastVariables(3, "map", {shared_name("names"): records}).initialized("names", Structure)

    made = weakref.ref(of_superstep([1]))
    records = [2]
    later = of_superstep(records)
    assert made() is None
    assert of_superstep(records) is later
