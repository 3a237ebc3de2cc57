"""How a DataSet program runs: results, functions, errors, accumulators."""

import pytest
from pyspark import SparkContext

from ekorn.common import Configuration, Types
from ekorn.dataset import MapPartitionFunction
from ekorn.datastream.functions import MapFunction
from ekorn.errors import JobExecutionError


def test_word_count(env):
    lines = env.from_elements("to be or not to be", "that is the question")
    words = lines.flat_map(str.split).map(lambda word: (word, 1))
    counts = words.group_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))
    expected = dict.fromkeys(["or", "not", "that", "is", "the", "question"], 1) | {"to": 2, "be": 2}
    assert sorted(counts.collect()) == sorted(expected.items())


def test_each_transformation_runs(env):
    numbers = env.generate_sequence(1, 10)
    assert sorted(numbers.map(lambda x: x * x).collect()) == [x * x for x in range(1, 11)]
    assert sorted(numbers.filter(lambda x: x % 2).collect()) == [1, 3, 5, 7, 9]
    assert numbers.count() == 10
    assert numbers.reduce(lambda a, b: a + b).collect() == [55]
    assert sorted(numbers.map_partition(lambda values: [sum(values)]).collect()) == [15, 40]
    assert sorted(numbers.group_by(lambda x: x % 3).reduce_group(lambda group: [max(group)]).collect()) == [8, 9, 10]
    assert sorted(numbers.union(numbers).collect()) == sorted([*range(1, 11), *range(1, 11)])
    assert numbers.reduce_group(lambda values: [len(list(values))]).collect() == [10]
    dealt = numbers.rebalance().set_parallelism(3)
    assert sorted(dealt.map_partition(lambda v: [len(list(v))]).set_parallelism(3).collect()) == [3, 3, 4]
    pairs = env.from_elements(("a", 1, True), ("b", 2, False))
    assert sorted(pairs.project(1, 0, 1).collect()) == [(1, "a", 1), (2, "b", 2)]


class Opened(MapFunction):
    def open(self, config):
        self.factor = config.get_integer("factor", 0)
        self.seen = self.get_runtime_context().get_int_counter("seen")
        self.get_runtime_context().get_int_counter("opened").add()

    def map(self, value):
        self.seen.add()
        return value * self.factor

    def close(self):
        self.get_runtime_context().get_int_counter("closed").add()


def test_the_job_group_of_the_program_stays(env):
    env.from_elements(1).count()
    context = SparkContext.getOrCreate()
    context.setJobGroup("mine", "my jobs")
    try:
        env.from_elements(1).map(lambda x: x + 1).collect()
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def test_a_rich_function_is_opened_and_closed_once_in_each_subtask(env):
    parameters = Configuration()
    parameters.set_integer("factor", 3)
    shared = env.generate_sequence(1, 10).map(Opened()).with_parameters(parameters)
    twice = shared.union(shared)
    assert sum(twice.rebalance().collect()) == 2 * 3 * 55
    result = env.get_last_job_execution_result()
    assert result is not None
    assert result.get_all_accumulator_results() == {"seen": 10, "opened": 2, "closed": 2}


def test_a_failing_function_is_named_with_record_and_partition(env):
    failing = env.generate_sequence(1, 10).map(lambda x: x).filter(lambda x: x // (x - 7) > 5).name("narrow")
    with pytest.raises(JobExecutionError) as caught:
        failing.group_by(lambda x: x).reduce_group(list).collect()
    message = str(caught.value)
    assert "ZeroDivisionError" in message and "'narrow'" in message and "subtask 1" in message and "record 7" in message
    assert "lambda x: x // (x - 7) > 5" in message
    assert "java" not in message and "ekorn-failure" not in message and "stage_task" not in message


def test_a_failing_open_and_a_failing_key_selector_are_named(env):
    with pytest.raises(JobExecutionError, match=r"'broken' \(subtask \d\): AttributeError"):
        env.from_elements(1).map_partition(Broken()).name("broken").collect()
    with pytest.raises(JobExecutionError, match=r"the key of operator 'sums'.*record 1: TypeError"):
        env.from_elements(1).group_by(lambda x: x[0]).reduce(max).name("sums").collect()


class Broken(MapPartitionFunction):
    def open(self, runtime_context):
        runtime_context.no_such_method()

    def map_partition(self, values):
        return values


def test_a_key_of_none_is_refused(env):
    with pytest.raises(JobExecutionError, match=r"None is not a key"):
        env.from_elements(("a", 1), (None, 2)).group_by(0).reduce(lambda a, b: a).collect()


def test_a_declared_type_is_checked_and_prints(env, capsys):
    env.from_elements(("a", 1)).map(lambda x: x, Types.TUPLE([Types.STRING(), Types.INT()])).print()
    env.from_elements(("a", 1)).print()
    assert capsys.readouterr().out == "(a,1)\n('a', 1)\n"
    with pytest.raises(JobExecutionError, match="does not fit the declared type"):
        env.from_elements(("a", 1)).map(lambda x: x, Types.STRING()).collect()


def test_groups_on_partitioned_keys_are_not_shuffled_again(env):
    words = env.from_elements(("a", 1), ("b", 2), ("a", 3)).partition_by_hash(0).filter(lambda x: True)
    assert sorted(words.group_by(0).reduce_group(lambda g: [sorted(g)]).collect()) == [[("a", 1), ("a", 3)], [("b", 2)]]
