"""What a program may not do with an iteration is refused where the call is written."""

from __future__ import annotations

import re

import pytest

from ekorn.batch.plan.iteration_specs import BulkIterationSpec, DeltaIterationSpec
from ekorn.dataset import DataSet, ExecutionEnvironment, LongSumAggregator, LongZeroConvergence
from ekorn.errors import InvalidProgramError


@pytest.fixture
def env() -> ExecutionEnvironment:
    return ExecutionEnvironment.get_execution_environment().set_parallelism(2)


@pytest.fixture
def pairs(env: ExecutionEnvironment) -> DataSet:
    return env.from_elements((1, "a"), (2, "b"))


def same(record: object) -> object:
    return record


def refused(words: str) -> pytest.RaisesExc[InvalidProgramError]:
    return pytest.raises(InvalidProgramError, match=words)


@pytest.mark.parametrize("wrong", [0, -1, True, 2.5])
def test_the_number_of_supersteps_is_at_least_one(pairs: DataSet, wrong: int) -> None:
    with refused(r"iterate\(\) takes the number of supersteps"):
        pairs.iterate(wrong)
    with refused(r"iterate_delta\(\) takes the number of supersteps"):
        pairs.iterate_delta(pairs, wrong, 0)


def test_an_iteration_is_closed_once(pairs: DataSet) -> None:
    bulk = pairs.iterate(3)
    bulk.close_with(bulk.map(same))
    with refused(r"the iteration was already closed at test_iteration_program.py:\d+"):
        bulk.close_with(bulk.map(same))
    delta = pairs.iterate_delta(pairs, 3, 0)
    work = delta.get_workset().map(same)
    delta.close_with(work, work)
    with refused("the iteration was already closed at"):
        delta.close_with(work, work)


def test_data_of_an_iteration_is_used_inside_it_alone(env: ExecutionEnvironment, pairs: DataSet) -> None:
    bulk = pairs.iterate(3)
    step = bulk.map(same)
    bulk.close_with(step)
    for use in (step.collect, step.count, step.print, lambda: env.add_sink(step)):
        with refused(r"inside the iteration of BulkIteration at test_iteration_program|inside the iteration of"):
            use()
    with refused("inside the iteration of"):
        pairs.iterate_delta(pairs, 3, 0).get_workset().collect()


def test_iterations_are_not_nested(pairs: DataSet) -> None:
    outer = pairs.iterate(3)
    with refused(r"iterate\(\): .* iterations cannot be nested"):
        outer.map(same).iterate(2)
    with refused(r"iterate_delta\(\): .* iterations cannot be nested"):
        pairs.iterate_delta(outer, 2, 0)
    other = pairs.iterate(2)
    with refused(r"Union: the data sets belong to two iterations"):
        outer.union(other)


def test_an_iteration_may_use_the_result_of_another(pairs: DataSet) -> None:
    first = pairs.iterate(3)
    result = first.close_with(first.map(same))
    second = pairs.iterate(3)
    second.close_with(second.union(result))


def test_the_ends_of_an_iteration_depend_on_it(env: ExecutionEnvironment, pairs: DataSet) -> None:
    bulk = pairs.iterate(3)
    with refused("the result does not depend on the data of the iteration"):
        bulk.close_with(pairs.map(same))
    with refused("the termination criterion does not depend"):
        bulk.close_with(bulk.map(same), pairs)
    with pytest.raises(TypeError, match=r"close_with\(\) takes a DataSet"):
        bulk.close_with(None)  # type: ignore[arg-type]
    delta = pairs.iterate_delta(pairs, 3, 0)
    with refused("the next work set does not depend"):
        delta.close_with(delta.get_workset(), pairs)
    with refused("the delta is the solution set itself"):
        delta.close_with(delta.get_solution_set(), delta.get_workset())


@pytest.mark.parametrize(
    "use", ["map", "flat_map", "filter", "map_partition", "reduce_group", "rebalance", "group_by", "union", "collect"]
)
def test_the_solution_set_is_only_joined_and_co_grouped(pairs: DataSet, use: str) -> None:
    solution = pairs.iterate_delta(pairs, 3, 0).get_solution_set()
    calls = {
        "map": lambda: solution.map(same),
        "flat_map": lambda: solution.flat_map(lambda record: [record]),
        "filter": lambda: solution.filter(bool),
        "map_partition": lambda: solution.map_partition(list),
        "reduce_group": lambda: solution.reduce_group(list),
        "rebalance": solution.rebalance,
        "group_by": lambda: solution.group_by(0).reduce(max),
        "union": lambda: pairs.union(solution),
        "collect": solution.collect,
    }
    with refused(r"can be used only in join\(\) and co_group\(\)"):
        calls[use]()


def test_keys_of_a_solution_set_are_fields(pairs: DataSet) -> None:
    with refused("takes fields as keys, not a key selector"):
        pairs.iterate_delta(pairs, 3, lambda record: record[0])  # type: ignore[call-overload]
    with refused(r"iterate_delta\(\) needs a key"):
        pairs.iterate_delta(pairs, 3)


def test_aggregators_are_checked(pairs: DataSet) -> None:
    bulk = pairs.iterate(3).register_aggregator("sum", LongSumAggregator())
    with refused("already has an aggregator 'sum'"):
        bulk.register_aggregator("sum", LongSumAggregator())
    with pytest.raises(TypeError, match="takes an Aggregator"):
        bulk.register_aggregator("other", sum)  # type: ignore[arg-type]
    bulk.register_aggregation_convergence_criterion("zero", LongSumAggregator(), LongZeroConvergence())
    with refused(re.escape("already has a convergence criterion, for aggregator 'zero'")):
        bulk.register_aggregation_convergence_criterion("two", LongSumAggregator(), LongZeroConvergence())


def test_an_iteration_is_one_operator_whose_inputs_are_all_that_it_reads(env: ExecutionEnvironment) -> None:
    initial, outside, used_twice = (env.from_elements((n, n)).name(name) for n, name in enumerate("abc"))
    bulk = initial.iterate(3)
    result = bulk.close_with(bulk.union(outside, used_twice, used_twice)).name("loop")
    (sink,) = env.plan([result.map(same)]).sinks
    (loop,) = sink.inputs
    assert isinstance(loop.spec, BulkIterationSpec)
    assert (loop.name, [each.name for each in loop.inputs]) == ("loop", ["a", "b", "c"])
    delta = initial.iterate_delta(used_twice, 5, 0).name("delta loop").parallelism(3)
    changed = delta.get_workset().union(outside)
    (sink,) = env.plan([delta.close_with(changed, changed).map(same)]).sinks
    (loop,) = sink.inputs
    assert isinstance(loop.spec, DeltaIterationSpec)
    assert (loop.name, loop.parallelism, loop.spec.limits.max_iterations) == ("delta loop", 3, 5)
    assert [each.name for each in loop.inputs] == ["a", "c", "b"]
