"""How a region of a job that runs continuously is laid out: which subtasks share a shuffle, and where blobs go."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ekorn.common import Configuration, Types
from ekorn.engine.spark.driver_side.task_slots import task_count
from ekorn.engine.spark.driver_side.transport_layout import TransportShuffle, transport_shuffles
from ekorn.engine.spark.task_side.level_task import HostedSubtask
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph, Vertex
from ekorn.graph.regions import regions
from tests.slot.small_job import graph


def laid_out(of: JobGraph, region: int = 0) -> list[TransportShuffle]:
    def hosted(vertex: Vertex, index: int) -> HostedSubtask:
        return HostedSubtask(SubtaskId(vertex.id, index), index, f"slot {index}", region)

    return transport_shuffles(of, region, regions(of), hosted=hosted, secret=b"", attempt=0)


def subtasks(of: JobGraph, task: Any) -> list[str]:
    return [f"{of.vertices[hosted.id.vertex].name} {hosted.id.subtask}" for hosted in task.subtasks]


def test_levels_that_follow_each_other_have_shuffles_of_their_own() -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(0, 9).name("numbers")
        firsts = numbers.key_by(lambda n: n % 3).map(lambda n: n).name("firsts")
        firsts.key_by(lambda n: n % 2).map(lambda n: n).name("seconds").set_parallelism(1).print().set_parallelism(1)

    of = graph(draw, parallelism=2)
    first, second = laid_out(of)
    numbers, firsts, seconds = (vertex.name for vertex in of.vertices)
    assert (subtasks(of, first.outlets), subtasks(of, first.inlets)) == (
        [f"{numbers} 0", f"{numbers} 1"],
        [f"{firsts} 0", f"{firsts} 1"],
    )
    assert (subtasks(of, second.outlets), subtasks(of, second.inlets)) == (
        [f"{firsts} 0", f"{firsts} 1"],
        [f"{seconds} 0"],
    )
    assert task_count(of) == 7, "a task for each direction of each subtask"


def test_exchanges_that_share_a_source_or_a_target_share_a_shuffle() -> None:
    def draw(env: Any) -> None:
        left, right = env.from_sequence(0, 9), env.from_sequence(0, 9)
        both = left.rebalance().union(right.rebalance()).map(lambda n: n).name("both")
        both.rebalance().print()
        left.rebalance().map(lambda n: n).name("alone").print()

    of = graph(draw, parallelism=2)
    of_inputs, of_output = sorted(laid_out(of), key=lambda shuffle: -len(shuffle.outlets.subtasks))
    assert of_inputs.inlets is not None and of_output.inlets is not None
    assert len(of_inputs.outlets.subtasks) == 4, "one task takes all that leaves a source"
    assert len(of_inputs.inlets.subtasks) == 4, "one task brings all that arrives for an operator"
    assert len(of_output.outlets.subtasks) == len(of_output.inlets.subtasks) == 2
    for shuffle in (of_inputs, of_output):
        assert shuffle.inlets is not None
        for destination, partition in shuffle.outlets.routes.items():
            exchange = next(each for each in of.exchanges if each.id == destination.exchange)
            assert shuffle.inlets.subtasks[partition].id == SubtaskId(exchange.target, destination.target)


def mixed(env: Any) -> None:
    """Draw a pipeline with exchanges over three levels, side by side with one without any."""
    numbers = env.from_sequence(0, 9)
    firsts = numbers.key_by(lambda n: n % 3).map(lambda n: n, Types.LONG())
    firsts.union(numbers.rebalance()).key_by(lambda n: n % 2).map(lambda n: n).print()
    env.from_sequence(0, 9).print()


@pytest.mark.parametrize("strategy", ["region", "full"])
def test_every_subtask_has_the_tasks_that_it_waits_for(strategy: str) -> None:
    def draw(env: Any) -> None:
        env.configure(Configuration().set_string("jobmanager.execution.failover-strategy", strategy))
        mixed(env)

    of = graph(draw, parallelism=2)
    tasks: Counter[tuple[SubtaskId, str]] = Counter()
    for region in sorted(set(regions(of).values())):
        for shuffle in laid_out(of, region):
            tasks.update((hosted.id, "output") for hosted in shuffle.outlets.subtasks)
            tasks.update((hosted.id, "input") for hosted in (shuffle.inlets.subtasks if shuffle.inlets else ()))
    assert set(tasks.values()) == {1}
    assert tasks.total() == task_count(of)
    for vertex in of.vertices:
        for index in range(vertex.parallelism):
            subtask = SubtaskId(vertex.id, index)
            brings, takes = bool(of.inputs_of(vertex.id)), bool(of.outputs_of(vertex.id))
            assert tasks[subtask, "input"] == brings
            assert tasks[subtask, "output"] == (takes or not brings)


def test_a_subtask_without_inputs_and_outputs_has_a_task_that_writes_nothing() -> None:
    of = graph(lambda env: env.from_sequence(0, 9).print(), parallelism=2)
    for region in (0, 1):
        (alone,) = laid_out(of, region)
        assert alone.inlets is None and len(alone.outlets.subtasks) == 1 and alone.outlets.routes == {}
    assert task_count(of) == 2
