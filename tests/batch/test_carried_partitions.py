"""Shuffles and broadcasts of supersteps: what stays where it is, and what is sent once for all supersteps."""

import pytest

from ekorn.batch.planner.plan_runner import run_on
from ekorn.batch.program.runner import plans_run_by
from ekorn.dataset import ExecutionEnvironment
from ekorn.datastream.functions import MapFunction
from ekorn.testing.local_partitions import LocalRdds, LocalSuperstepEngine


class CountedRdds(LocalRdds):
    def __init__(self):
        super().__init__()
        self.broadcasts = 0

    def broadcast(self, value):
        self.broadcasts += 1
        return super().broadcast(value)


class CountedEngine(LocalSuperstepEngine):
    def __init__(self):
        self.supersteps = []
        self.outside = CountedRdds()

    def rdds(self, description):
        self.supersteps.append(CountedRdds())
        return self.supersteps[-1]


@pytest.fixture
def engine():
    counted = CountedEngine()
    with plans_run_by(lambda plan, settings: run_on(counted.outside, counted, plan, settings, "0" * 32)):
        yield counted


def shuffles(engine):
    return [rdds.shuffles for rdds in engine.supersteps]


@pytest.fixture
def env():
    return ExecutionEnvironment().set_parallelism(3)


def ranked(env, *, annotated):
    links = env.from_elements(("a", ["b", "c"]), ("b", ["a"]), ("c", ["a", "b"]), ("d", ["a"]))
    iteration = env.from_elements(("a", 8.0), ("b", 8.0), ("c", 8.0), ("d", 8.0), (None, 8.0)).iterate(4)
    sent = (
        iteration.join(links)
        .where(0)
        .equal_to(0)
        .using_flat(lambda page, link: [(target, page[1] / len(link[1])) for target in link[1]])
    )
    halved = sent.group_by(0).sum(1).map(lambda page: (page[0], page[1] / 2))
    return iteration.close_with(halved.with_forwarded_fields("f0") if annotated else halved)


def test_data_that_stays_partitioned_by_key_is_joined_without_a_shuffle(env, engine):
    with_annotation = sorted(ranked(env, annotated=True).collect())
    assert shuffles(engine) == [1, 1, 1, 1]
    engine.supersteps.clear()
    without = sorted(ranked(env, annotated=False).collect())
    assert shuffles(engine) == [2, 2, 2, 2]
    assert with_annotation == without


def test_a_result_that_stays_partitioned_is_grouped_without_a_shuffle(env, engine):
    before = engine.outside.shuffles
    ranked(env, annotated=True).group_by(0).sum(1).collect()
    began = engine.outside.shuffles - before
    ranked(env, annotated=True).collect()
    assert engine.outside.shuffles - before == 2 * began


def test_a_work_set_that_is_the_delta_is_joined_by_its_keys_without_a_shuffle(env, engine):
    edges = env.from_elements((1, 2), (2, 1), (2, 3), (3, 2), (4, 5), (5, 4))
    vertices = env.generate_sequence(1, 5).map(lambda vertex: (vertex, vertex))
    iteration = vertices.iterate_delta(vertices, 100, 0)
    proposed = iteration.get_workset().join(edges).where(0).equal_to(0).using(lambda vertex, edge: (edge[1], vertex[1]))
    known = proposed.group_by(0).reduce(min).with_forwarded_fields("f0")
    better = known.join(iteration.get_solution_set()).where(0).equal_to(0)
    smaller = better.using_flat(lambda new, old: [new] if new[1] < old[1] else []).with_forwarded_fields_first("*")
    components = iteration.close_with(smaller, smaller)
    assert sorted(components.collect()) == [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4)]
    assert set(shuffles(engine)) == {1}


class Adding(MapFunction):
    def open(self, runtime_context):
        self.added = sum(runtime_context.get_broadcast_variable("added"))

    def map(self, value):
        return value + self.added


def test_a_broadcast_from_outside_is_sent_once_for_all_supersteps(env, engine):
    outside = env.from_elements(1, 2)
    iteration = env.from_elements(0, 10).iterate(5)
    added = iteration.map(Adding()).with_broadcast_set(outside, "added")
    assert sorted(iteration.close_with(added).collect()) == [15, 25]
    assert [rdds.broadcasts for rdds in engine.supersteps] == [0] * 5
    assert engine.outside.broadcasts == 1


def test_a_broadcast_from_inside_is_sent_in_each_superstep(env, engine):
    iteration = env.from_elements(1, 2).iterate(3)
    added = iteration.map(Adding()).with_broadcast_set(iteration.reduce(max), "added")
    assert sorted(iteration.close_with(added).collect()) == [15, 16]
    assert [rdds.broadcasts for rdds in engine.supersteps] == [1, 1, 1]


def test_a_crossed_input_from_outside_is_sent_once(env, engine):
    iteration = env.from_elements(1).iterate(3)
    crossed = iteration.cross(env.from_elements(10)).using(lambda one, other: one + other)
    assert iteration.close_with(crossed).collect() == [31]
    assert engine.outside.broadcasts == 1 and not any(rdds.broadcasts for rdds in engine.supersteps)
