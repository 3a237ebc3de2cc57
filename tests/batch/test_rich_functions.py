"""Rich functions of Flink's documents in DataSet programs: each is opened with its parameters and has its context."""

from __future__ import annotations

import pytest

from ekorn import dataset
from ekorn.common import Configuration, IntCounter
from ekorn.dataset import (
    ExecutionEnvironment,
    Order,
    RichCoGroupFunction,
    RichCrossFunction,
    RichFilterFunction,
    RichFlatJoinFunction,
    RichFlatMapFunction,
    RichGroupCombineFunction,
    RichGroupReduceFunction,
    RichJoinFunction,
    RichMapFunction,
    RichMapPartitionFunction,
    RichReduceFunction,
)
from ekorn.datastream.functions import Function
from ekorn.testing.local_run import collect_locally, on_local_engine


@pytest.fixture
def env():
    return ExecutionEnvironment.get_execution_environment().set_parallelism(2)


class Limited(Function):
    """Reads the limit that `with_parameters` gave."""

    def open(self, config):
        self.limit = config.get_integer("limit", 0)
        assert self.get_runtime_context().get_number_of_parallel_subtasks() > 0


class Above(Limited, RichFilterFunction):
    def filter(self, value):
        return value > self.limit


class Add(Limited, RichMapFunction):
    def map(self, value):
        return value + self.limit


class Twice(Limited, RichFlatMapFunction):
    def flat_map(self, value):
        return [value, value + self.limit]


class Sum(Limited, RichReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2 + self.limit


class CountOfPartition(Limited, RichMapPartitionFunction):
    def map_partition(self, values):
        return [len(list(values)) + self.limit]


class SumOfGroup(Limited, RichGroupReduceFunction):
    def reduce(self, values):
        return [sum(values) + self.limit]


class SumOfSome(Limited, RichGroupCombineFunction):
    def combine(self, values):
        return [sum(values) + 0 * self.limit]


class Joined(Limited, RichJoinFunction):
    def join(self, first, second):
        return first, second, self.limit


class JoinedTwice(Limited, RichFlatJoinFunction):
    def join(self, first, second):
        return [first, second + self.limit]


class Both(Limited, RichCoGroupFunction):
    def co_group(self, first, second):
        return [(len(list(first)), len(list(second)), self.limit)]


class Product(Limited, RichCrossFunction):
    def cross(self, first, second):
        return first * second + self.limit


def itself(value):
    return value


GROUPS = [(0, 1, 10), (1, 0, 10), (1, 0, 10), (1, 1, 10), (1, 1, 10)]
PRODUCTS = sorted(first * second + 10 for first in (9, 10, 11, 12) for second in (11, 12, 13))


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (lambda a, b: a.filter(Above()), [11, 12]),
        (lambda a, b: a.map(Add()), [19, 20, 21, 22]),
        (lambda a, b: a.flat_map(Twice()), [9, 10, 11, 12, 19, 20, 21, 22]),
        (lambda a, b: a.reduce(Sum()), [72]),
        (lambda a, b: a.map_partition(CountOfPartition()).set_parallelism(1), [14]),
        (lambda a, b: a.reduce_group(SumOfGroup()), [52]),
        (lambda a, b: a.group_by(itself).combine_group(SumOfSome()), [9, 10, 11, 12]),
        (lambda a, b: a.join(b).where(itself).equal_to(itself).using(Joined()), [(11, 11, 10), (12, 12, 10)]),
        (lambda a, b: a.join(b).where(itself).equal_to(itself).using(JoinedTwice()), [11, 12, 21, 22]),
        (lambda a, b: a.co_group(b).where(itself).equal_to(itself).using(Both()), GROUPS),
        (lambda a, b: a.cross(b).using(Product()), PRODUCTS),
    ],
)
def test_a_rich_function_is_opened_with_the_parameters_of_its_operator(env, drawn, expected):
    parameters = Configuration()
    parameters.set_integer("limit", 10)
    a, b = env.from_elements(9, 10, 11, 12), env.from_elements(11, 12, 13)
    assert sorted(collect_locally(drawn(a, b).with_parameters(parameters))) == expected


def test_rich_functions_are_the_functions():
    rich = [name for name in dataset.__all__ if name.startswith("Rich")]
    assert len(rich) == 11
    for name in rich:
        assert getattr(dataset, name) is getattr(dataset, name.removeprefix("Rich"))


class Known(RichMapFunction):
    """Uses all that the documents pass to functions: a broadcast set, a cached file, global parameters, a counter."""

    def open(self, config):
        context = self.get_runtime_context()
        self.known = set(context.get_broadcast_variable("known"))
        with open(context.get_distributed_cache().get_file("suffixes")) as file:
            self.suffix = file.read().strip()
        parameters = context.get_execution_config().get_global_job_parameters()
        self.prefix = parameters.get_string("prefix", None)
        self.counter = IntCounter()
        context.add_accumulator("unknown", self.counter)

    def map(self, value):
        if value not in self.known:
            self.counter.add(1)
        return f"{self.prefix}{value}{self.suffix}"


def test_a_rich_map_has_a_broadcast_set_a_cached_file_global_parameters_and_a_counter(env, tmp_path):
    (tmp_path / "suffixes").write_text("!\n")
    env.register_cached_file(str(tmp_path / "suffixes"), "suffixes")
    parameters = Configuration()
    parameters.set_string("prefix", ">")
    env.get_config().set_global_job_parameters(parameters)
    words = env.from_elements("a", "b", "c").map(Known()).with_broadcast_set(env.from_elements("a", "x"), "known")
    with on_local_engine():
        found = words.sort_partition(itself, Order.ASCENDING).set_parallelism(1).collect()
        assert found == [">a!", ">b!", ">c!"]
        assert env.get_last_job_execution_result().get_accumulator_result("unknown") == 2
