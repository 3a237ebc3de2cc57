"""Fields of function objects travel from one superstep to the next, in the subtask that changed them."""

from __future__ import annotations

import threading
from typing import Any

import cloudpickle
import pytest

from ekorn.batch.tasks.blobs import OperatorSubtask
from ekorn.batch.tasks.fused_loop import fused
from ekorn.batch.tasks.record_operators import MapRecords
from ekorn.batch.tasks.superstep import FunctionFields, Superstep, SuperstepContext, task_context
from ekorn.batch.tasks.task_context import TaskJobInfo, TaskRuntimeContext
from ekorn.datastream.functions import MapFunction
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.iteration_context import LongSumAggregator
from ekorn.functions.runtime_context import RuntimeContext


class Keeping(MapFunction):
    def __init__(self) -> None:
        self.seen: list[int] = []
        self.alias = self.seen

    def open(self, runtime_context: RuntimeContext) -> None:
        self.context = runtime_context
        self.lock = threading.Lock()

    def map(self, value: int) -> int:
        self.seen.append(value)
        return len(self.alias)


def superstep(function: Any, records: list[int], carried: bytes | None, number: int = 1) -> tuple[list[int], Any]:
    """Run a superstep of subtask 3 of operator 7; return the results, and what it reports."""
    operator: MapRecords = cloudpickle.loads(cloudpickle.dumps(MapRecords("keep", function)))  # as each task gets it
    operator.number = 7
    step = Superstep(number, fields={} if carried is None else {OperatorSubtask(7, 3): carried})
    fields = FunctionFields(step, operator, 3)
    operator.open(task_context(TaskJobInfo("0" * 32, "job", superstep=step), operator, 3, 4, 0))
    (loop,) = fused([operator])
    results = list(loop.run(iter(records)))
    operator.close()
    return results, fields.changed()


def test_fields_are_there_in_the_next_superstep_and_still_share_objects() -> None:
    results, carried = superstep(Keeping(), [5, 6], None)
    assert results == [1, 2]
    results, carried = superstep(Keeping(), [7], carried, 2)
    assert results == [3]
    assert superstep(Keeping(), [8], carried, 3)[0] == [4]


def test_a_field_that_cannot_be_pickled_is_left_to_open() -> None:
    _, carried = superstep(Keeping(), [5], None)
    (fields,) = cloudpickle.loads(carried)
    assert fields == {"seen": [5], "alias": [5]}


class Stateless(MapFunction):
    factor = 2

    def map(self, value: int) -> int:
        return value * self.factor


@pytest.mark.parametrize("function", [Stateless(), len, lambda value: value])
def test_functions_without_changed_fields_report_nothing(function: Any) -> None:
    operator = MapRecords("map", function)
    assert FunctionFields(Superstep(1), operator, 0).changed() is None


def test_fields_are_not_kept_outside_of_iterations() -> None:
    keeping = Keeping()
    fields = FunctionFields(None, MapRecords("map", keeping), 0)
    keeping.map(1)
    assert fields.changed() is None


def test_the_context_has_the_aggregators_that_the_iteration_registered() -> None:
    registered = LongSumAggregator()
    registered.aggregate(100)  # before the job: each superstep begins at zero
    operator = MapRecords("map", len)
    facts = TaskJobInfo("0" * 32, "job", superstep=Superstep(2, {"n": registered, "unused": registered}, {"n": 7}))
    context = task_context(facts, operator, 0, 1, 0)
    assert isinstance(context, SuperstepContext)
    context.get_iteration_aggregator("n").aggregate(2)
    context.get_iteration_aggregator("n").aggregate(3)
    assert context.aggregates == {"n": 5}
    assert (context.get_superstep_number(), context.get_previous_iteration_aggregate("n")) == (2, 7)
    assert context.get_previous_iteration_aggregate("unused") is None
    for ask in (context.get_iteration_aggregator, context.get_previous_iteration_aggregate):
        with pytest.raises(InvalidProgramError, match=r"no aggregator 'x', only \['n', 'unused'\]"):
            ask("x")
    assert type(task_context(TaskJobInfo("0" * 32, "job"), operator, 0, 1, 0)) is TaskRuntimeContext
