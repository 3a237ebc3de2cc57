"""Iterations against plain Python, in this process. `spark/test_iterations.py` runs them on Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.dataset import DataSet, ExecutionEnvironment, JoinHint, LongSumAggregator
from ekorn.datastream.functions import MapFunction, RuntimeContext
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing.local_run import collect_locally
from tests.examples_by_profile import examples

Pair = tuple[int, int]
Edges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=15)
Pairs = st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, None]), st.integers(0, 5)), max_size=8)
Parallelism = st.sampled_from([1, 2, 5])


def environment(parallelism: int = 2) -> ExecutionEnvironment:
    return ExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def closest(edges: list[Pair], starts: set[int], steps: int) -> dict[int, int]:
    """Return how many edges each vertex is away from a start, up to a number of steps."""
    distance = dict.fromkeys(starts, 0)
    frontier = set(starts)
    for step in range(1, steps + 1):
        frontier = {b for a, b in edges if a in frontier} - distance.keys()
        distance |= dict.fromkeys(frontier, step)
    return distance


@given(Edges, st.sets(st.integers(0, 9), max_size=3), st.integers(1, 4), Parallelism, st.booleans())
def test_a_delta_iteration_equals_a_search(
    edges: list[Pair], starts: set[int], steps: int, parallelism: int, co_groups: bool
) -> None:
    """The solution set begins with the starts alone, and grows."""
    env = environment(parallelism)
    first = env.from_collection([(vertex, 0) for vertex in starts])
    iteration = first.iterate_delta(first, steps, 0)
    solution, work = iteration.get_solution_set(), iteration.get_workset()
    reached = work.join(env.from_collection(edges)).where(0).equal_to(0).using(lambda v, edge: (edge[1], v[1] + 1))
    if co_groups:
        new = solution.co_group(reached).where(0).equal_to(0).using(unknown)
    else:
        known = reached.join(solution).where(0).equal_to(0).using(lambda found, old: found)
        new = reached.distinct().co_group(known).where("*").equal_to("*").using(lambda a, b: unknown(b, a))
    assert sorted(collect_locally(iteration.close_with(new, new))) == sorted(closest(edges, starts, steps).items())


def unknown(known: Iterator[Any], found: Iterator[Any]) -> Iterator[Any]:
    if not list(known):
        yield from list(found)[:1]


KINDS: dict[str, Callable[[DataSet, DataSet], Any]] = {
    "inner": lambda inside, outside: inside.join(outside),
    "inner, swapped": lambda inside, outside: outside.join(inside),
    "inner, sorted": lambda inside, outside: inside.join(outside, JoinHint.REPARTITION_SORT_MERGE),
    "inner, tiny": lambda inside, outside: inside.join_with_tiny(outside),
    "left": lambda inside, outside: inside.left_outer_join(outside),
    "right, swapped": lambda inside, outside: outside.right_outer_join(inside),
    "right": lambda inside, outside: inside.right_outer_join(outside),
    "full": lambda inside, outside: inside.full_outer_join(outside),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(12))
@given(Pairs, Pairs, Parallelism)
def test_a_join_with_data_from_outside_is_the_same_inside_an_iteration(
    kind: str, inside: list[Any], outside: list[Any], parallelism: int
) -> None:
    env = environment(parallelism)
    other = env.from_collection(outside)

    def joined(data: DataSet) -> DataSet:
        return KINDS[kind](data, other).where(0).equal_to(0).using(lambda a, b: ((a or b)[0], added(a, b)))

    once = collect_locally(joined(env.from_collection(inside)))
    assert Counter(collect_locally(env.from_collection(inside).iterate(1, joined))) == Counter(once)
    twice = collect_locally(joined(env.from_collection(once)))
    assert Counter(collect_locally(env.from_collection(inside).iterate(2, joined))) == Counter(twice)


def added(a: Any, b: Any) -> int:
    return (10 * a[1] if a else 0) + (b[1] if b else 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8), Parallelism)
def test_a_superstep_sees_the_solution_set_of_the_last_one(elements: list[Pair], parallelism: int) -> None:
    """All elements of a superstep see the same old value, although each of them changes it."""
    env = environment(parallelism)
    iteration = env.from_elements((0, 0), (1, 0), (2, 0), (3, 0)).iterate_delta(env.from_collection(elements), 3, 0)
    seen = (
        iteration.get_workset()
        .join(iteration.get_solution_set())
        .where(0)
        .equal_to(0)
        .using(lambda work, old: (work[0], old[1] + 1))
    )
    result = dict(collect_locally(iteration.close_with(seen, seen)))
    assert result == {key: 3 if key in dict(elements) else 0 for key in range(4)}


def test_duplicates_and_new_keys_are_taken_by_key() -> None:
    env = environment()
    iteration = env.from_elements((1, "a"), (1, "b"), (2, "c")).iterate_delta(env.from_elements((2, "x")), 1, 0)
    changed = iteration.get_workset().flat_map(lambda t: [t, (7, "new")])
    result = collect_locally(iteration.close_with(changed, changed))
    assert Counter(key for key, _ in result) == Counter([1, 2, 7])
    assert {(2, "x"), (7, "new")} < set(result)


def test_keys_of_several_fields_and_by_name() -> None:
    env = environment()
    initial = env.from_elements(("a", 1, 0), ("a", 2, 0), ("b", 1, 0))
    iteration = initial.iterate_delta(env.from_elements((1, "a", 5), (1, "b", 6)), 1, "f0", "f1")
    changed = (
        iteration.get_workset()
        .join(iteration.get_solution_set())
        .where(1, 0)
        .equal_to(0, 1)
        .using(lambda work, old: (old[0], old[1], work[2]))
    )
    result = collect_locally(iteration.close_with(changed, changed))
    assert sorted(result) == [("a", 1, 5), ("a", 2, 0), ("b", 1, 6)]


def test_the_solution_set_is_searched_by_its_keys_alone() -> None:
    env = environment()
    pairs = env.from_elements((1, "a"))
    solution = pairs.iterate_delta(pairs, 3, 0).get_solution_set()
    with pytest.raises(InvalidProgramError, match="indexed by the keys 0 and cannot be searched by 1"):
        solution.join(env.from_elements(("a", 1))).where(1).equal_to(0)
    with pytest.raises(InvalidProgramError, match="cannot be combined with itself"):
        solution.join(solution).where(0).equal_to(0)
    for wrong in (solution.left_outer_join, pairs.right_outer_join):
        other = pairs if wrong == solution.left_outer_join else solution
        with pytest.raises(InvalidProgramError, match=r"only in join\(\) and co_group\(\)"):
            wrong(other).where(0).equal_to(0).using(lambda a, b: a)
    with pytest.raises(InvalidProgramError, match=r"only in join\(\) and co_group\(\)"):
        pairs.cross(solution)


def test_the_solution_set_has_partitions_of_its_own() -> None:
    env = environment()
    pairs = env.from_elements((1, "a"))
    iteration = pairs.iterate_delta(pairs, 3, 0)
    joined = iteration.get_workset().join(iteration.get_solution_set()).where(0).equal_to(0)
    changed = joined.with_partitioner(lambda key, count: 0).map(lambda pair: pair[0])
    with pytest.raises(InvalidProgramError, match="already partitioned by the hash of its keys"):
        iteration.close_with(changed, changed)


class Nearest(MapFunction):
    """Adds the nearest centre to a point."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.centres = runtime_context.get_broadcast_variable("centres")

    def map(self, value: int) -> Any:
        return min(self.centres, key=lambda centre: abs(centre - value)), value, 1


def test_a_broadcast_variable_of_an_iteration_changes_with_each_superstep() -> None:
    env = environment()
    points = env.from_elements(1, 2, 3, 50, 51, 52)
    centres = env.from_elements(0, 4).iterate(5)
    sums = points.map(Nearest()).with_broadcast_set(centres, "centres").group_by(0)
    moved = sums.reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2])).map(lambda total: total[1] // total[2])
    assert sorted(collect_locally(centres.close_with(moved))) == [2, 51]


def test_a_variable_from_outside_beside_one_of_the_iteration() -> None:
    env = environment()
    centres = env.from_elements(0, 4).iterate(2)
    nearest = env.from_elements(1, 9).map(Nearest()).with_broadcast_set(centres, "centres")
    nearest.with_broadcast_set(env.from_elements(7), "unused")
    assert sorted(collect_locally(centres.close_with(nearest.map(lambda found: found[1])))) == [1, 9]


class Ranked(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_iteration_aggregator("total")  # type: ignore[attr-defined]

    def map(self, value: Any) -> Any:
        self.total.aggregate(value[1])
        return value


@given(Edges, st.integers(1, 3), Parallelism)
def test_a_bulk_iteration_equals_a_loop(edges: list[Pair], steps: int, parallelism: int) -> None:
    """Each vertex hands all that it has to each neighbour; outside data is joined, unioned and co-grouped."""
    expected = dict.fromkeys(range(10), 1)
    for _ in range(steps):
        handed: defaultdict[int, int] = defaultdict(lambda: 1)
        for a, b in edges:
            handed[b] += expected[a]
        expected = {vertex: handed[vertex] for vertex in range(10)}
    env = environment(parallelism)
    vertices = env.generate_sequence(0, 9).map(lambda vertex: (vertex, 1))
    outside = env.from_collection(edges)
    iteration = vertices.iterate(steps).register_aggregator("total", LongSumAggregator())
    handed_on = iteration.join(outside).where(0).equal_to(0).using(lambda v, edge: (edge[1], v[1])).map(Ranked())
    summed = handed_on.union(vertices).group_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))
    grouped = summed.co_group(vertices).where(0).equal_to(0).using(lambda found, one: list(found))
    assert dict(collect_locally(iteration.close_with(grouped))) == expected


def test_two_iterations_in_a_row_and_one_beside() -> None:
    env = environment()
    first = env.from_elements(1, 2).iterate(2, lambda data: data.map(lambda x: x + 1))
    second = first.iterate(3, lambda data: data.union(first).distinct().map(lambda x: 2 * x))
    other = env.from_elements(5).iterate(2, lambda data: data.map(lambda x: x * x))
    found = {3, 4}
    for _ in range(3):
        found = {2 * x for x in found | {3, 4}}
    assert sorted(collect_locally(second.union(other))) == sorted([*found, 625])


def test_a_flat_join_in_an_iteration_must_not_return_one_text() -> None:
    env = environment()
    names = env.from_elements((1, "one"), (2, "two"))
    iteration = env.from_elements((1, "x"), (2, "y")).iterate(1)
    joined = iteration.join(names).where(0).equal_to(0).using_flat(lambda number, name: name[1]).name("names")
    with pytest.raises(JobExecutionError, match=r"'names' .*the function returned one str, '(one|two)'"):
        collect_locally(iteration.close_with(joined))
