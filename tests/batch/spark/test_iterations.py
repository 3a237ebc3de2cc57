"""Iterations on Spark: results, supersteps, aggregators, fields of functions, lost slots."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ekorn.dataset import (
    ConvergenceCriterion,
    ExecutionEnvironment,
    IterationRuntimeContext,
    LongSumAggregator,
    MapPartitionFunction,
)
from ekorn.datastream.functions import MapFunction, RuntimeContext
from ekorn.engine.slots.idle_pools import IDLE_POOLS
from ekorn.errors import JobExecutionError, SlotLostError
from tests.spark.processes import descendants, is_slot


def slot_processes() -> list[int]:
    """Return the slots that this process started, and that have neither ended nor wait for another iteration."""
    IDLE_POOLS.end_all()
    return [pid for pid in descendants(os.getpid()) if is_slot(pid)]


class Counted(MapFunction):
    """Counts what it is called with, in an accumulator."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_int_counter("calls")

    def map(self, value: Any) -> Any:
        self.calls.add()
        return value


def counted(env: ExecutionEnvironment) -> Any:
    result = env.get_last_job_execution_result()
    assert result is not None
    return result.get_accumulator_result("calls")


def test_a_bulk_iteration_runs_its_step_as_often_as_asked(env: ExecutionEnvironment) -> None:
    iteration = env.from_elements(1, 2, 3, 4, 5).iterate(3)
    result = iteration.close_with(iteration.map(lambda x: x + 1).map(Counted()))
    assert sorted(result.map(lambda x: x * 10).collect()) == [40, 50, 60, 70, 80]
    assert counted(env) == 15


def test_data_from_outside_an_iteration_is_computed_once(env: ExecutionEnvironment) -> None:
    outside = env.from_elements(1, 2).map(Counted())
    result = env.from_collection([]).iterate(3, lambda data: data.union(outside))
    assert sorted(result.collect()) == [1, 1, 1, 2, 2, 2]
    assert counted(env) == 2


def test_a_bulk_iteration_ends_when_its_criterion_is_empty(env: ExecutionEnvironment) -> None:
    def step(data: Any) -> Any:
        doubled = data.map(lambda x: 2 * x).map(Counted())
        return doubled, doubled.filter(lambda x: x < 20)

    assert sorted(env.from_elements(3, 10).iterate_with_termination(50, step).collect()) == [24, 80]
    assert counted(env) == 6


class Remembering(MapPartitionFunction):
    """Keeps fields from superstep to superstep, and something that cannot be pickled."""

    def __init__(self) -> None:
        self.opened = self.seen = self.closed = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        assert isinstance(runtime_context, IterationRuntimeContext)
        self.opened += 1
        self.unpicklable = (value for value in range(3))
        self.sum = runtime_context.get_iteration_aggregator("records")
        self.step = runtime_context.get_superstep_number()
        self.before = runtime_context.get_previous_iteration_aggregate("records")

    def map_partition(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.seen += 1
            self.sum.aggregate(1)
            yield (*value, (self.step, self.opened, self.closed, self.seen, self.before))

    def close(self) -> None:
        self.closed += 1


class AfterTwo(ConvergenceCriterion[int]):
    def is_converged(self, iteration: int, value: int) -> bool:
        return value == 2 and iteration == 3


def test_functions_keep_their_fields_and_share_aggregates(env: ExecutionEnvironment) -> None:
    iteration = env.from_elements(("a",), ("b",)).iterate(50)
    iteration.register_aggregation_convergence_criterion("records", LongSumAggregator(), AfterTwo())
    seen = [(1, 1, 0, 1, None), (2, 2, 1, 2, 2), (3, 3, 2, 3, 2)]
    assert sorted(iteration.close_with(iteration.map_partition(Remembering())).collect()) == [
        ("a", *seen),
        ("b", *seen),
    ]


def test_a_function_without_the_aggregator_that_it_asks_for_fails(env: ExecutionEnvironment) -> None:
    iteration = env.from_elements(("a",)).iterate(2)
    failing = iteration.map_partition(Remembering()).name("remembering")
    with pytest.raises(JobExecutionError, match=r"'remembering'.*no aggregator 'records'"):
        iteration.close_with(failing).collect()
    assert slot_processes() == []


def test_a_delta_replaces_elements_by_key_until_the_work_set_is_empty(env: ExecutionEnvironment) -> None:
    initial = env.from_elements((1, "a"), (2, "b"), (3, "c"))
    iteration = initial.iterate_delta(env.from_elements((2, 0), (4, 0)), 50, 0)
    next_work = iteration.get_workset().map(lambda t: (t[0], t[1] + 1)).filter(lambda t: t[1] < t[0]).map(Counted())
    delta = next_work.map(lambda t: (t[0], "x" * t[1]))
    result = iteration.close_with(delta, next_work)
    assert sorted(result.collect()) == [(1, "a"), (2, "x"), (3, "c"), (4, "xxx")]
    assert counted(env) == 4
    assert slot_processes() == []


def test_a_superstep_looks_up_the_solution_set_and_data_from_outside(env: ExecutionEnvironment) -> None:
    """The components of two paths: edges are looked up in an index, components in the solution set."""
    edges = env.from_collection([(n, n + 1) for n in range(11) if n != 5]).map(Counted())
    vertices = env.generate_sequence(0, 11).map(lambda vertex: (vertex, vertex))
    iteration = vertices.iterate_delta(vertices, 50, 0)
    work, solution = iteration.get_workset(), iteration.get_solution_set()
    proposed = work.join(edges).where(0).equal_to(0).using(lambda vertex, edge: (edge[1], vertex[1]))
    better = (
        solution.co_group(proposed.group_by(0).reduce(min))
        .where(0)
        .equal_to(0)
        .using(lambda known, found: [best for (_, old), best in zip(known, found, strict=True) if best[1] < old])
    )
    result = iteration.close_with(better, better).group_by(1).reduce_group(lambda group: [sorted(group)])
    assert sorted(result.collect()) == [[(n, 0) for n in range(6)], [(n, 6) for n in range(6, 12)]]
    assert counted(env) == 10


@pytest.mark.parametrize("fault", ["table-commit:1:3:kill", "table-write:0:5:kill"])
def test_a_lost_slot_changes_no_result(
    env: ExecutionEnvironment, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EKORN_FAULT", fault)
    monkeypatch.setenv("EKORN_FAULT_DIR", str(tmp_path))
    iteration = env.from_elements(("a",), ("b",)).iterate(3)
    iteration.register_aggregator("records", LongSumAggregator())
    seen = [(1, 1, 0, 1, None), (2, 2, 1, 2, 2), (3, 3, 2, 3, 2)]
    stepped = iteration.map(Counted()).map_partition(Remembering())
    assert sorted(iteration.close_with(stepped).collect()) == [("a", *seen), ("b", *seen)]
    assert counted(env) == 6
    assert [path.name for path in tmp_path.iterdir()] == [fault]
    assert slot_processes() == []


def test_a_result_that_is_lost_while_it_is_read_is_computed_again(
    env: ExecutionEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EKORN_FAULT", "table-read:0:3:kill")  # the superstep reads twice: the element, and the end
    monkeypatch.setenv("EKORN_FAULT_DIR", str(tmp_path))
    iteration = env.from_elements(1, 2).map(Counted()).iterate(1)
    result = iteration.close_with(iteration.map(Counted()))
    assert sorted(result.map(Counted()).collect()) == [1, 2]
    assert counted(env) == 6
    assert [path.name for path in tmp_path.iterdir()] == ["table-read:0:3:kill"]
    assert slot_processes() == []


def test_a_slot_that_is_lost_again_and_again_fails_the_program(
    env: ExecutionEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EKORN_FAULT", "table-commit:0:2:kill")
    env.get_configuration().set_integer("ekorn.dataset.iteration-attempts", 2)
    iteration = env.from_elements(1).iterate(3)
    with pytest.raises(SlotLostError, match="slot 0 was lost"):
        iteration.close_with(iteration.map(lambda x: x)).collect()
    assert slot_processes() == []
