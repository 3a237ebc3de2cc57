"""What the tasks of a superstep know about their iteration, and what they report to the driver.

Function objects are created again in each Spark job. Their fields therefore travel: at the end of a superstep each
subtask reports the fields that its functions changed, and the driver hands them to the same subtask of the next
superstep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from ekorn.batch.tasks.blobs import OperatorSubtask
from ekorn.batch.tasks.task_context import TaskJobInfo, TaskRuntimeContext
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.iteration_context import Aggregator, IterationRuntimeContext
from ekorn.functions.record_functions import Function
from ekorn.functions.runtime_context import RuntimeContext

__all__ = ["FunctionFields", "Superstep", "SuperstepContext", "task_context"]


@dataclass(frozen=True)
class Superstep:
    """One superstep of an iteration.

    Attributes:
        number: Its number, from 1.
        aggregators: The aggregators that the iteration registered, by name.
        previous: Their merged values after the last superstep; empty in the first.
        fields: The fields of function objects, pickled, by operator and subtask.
    """

    number: int
    aggregators: Mapping[str, Aggregator[Any]] = field(default_factory=dict)
    previous: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[OperatorSubtask, bytes] = field(default_factory=dict)


class SuperstepContext(TaskRuntimeContext, IterationRuntimeContext):
    """The runtime context of one operator in one subtask of a superstep."""

    def __init__(
        self,
        facts: TaskJobInfo,
        operator: TaskOperator,
        index: int,
        parallelism: int,
        attempt: int,
        *,
        superstep: Superstep,
    ) -> None:
        super().__init__(facts, operator, index, parallelism, attempt)
        self._superstep = superstep
        self._aggregators: dict[str, Aggregator[Any]] = {}

    def get_superstep_number(self) -> int:
        return self._superstep.number

    def get_iteration_aggregator(self, name: str) -> Aggregator[Any]:
        found = self._aggregators.get(name)
        if found is None:
            found = self._aggregators[name] = deepcopy(self._registered(name))
            found.reset()
        return found

    def get_previous_iteration_aggregate(self, name: str) -> Any:
        self._registered(name)
        return self._superstep.previous.get(name)

    @property
    def aggregates(self) -> dict[str, Any]:
        return {name: each.get_aggregate() for name, each in self._aggregators.items()}

    def _registered(self, name: str) -> Aggregator[Any]:
        registered = self._superstep.aggregators
        if name not in registered:
            raise InvalidProgramError(
                f"the iteration has no aggregator {name!r}, only {sorted(registered) or 'none'}; "
                "call register_aggregator() on it"
            )
        return registered[name]


def task_context(
    facts: TaskJobInfo, operator: TaskOperator, index: int, parallelism: int, attempt: int
) -> TaskRuntimeContext:
    """Return the runtime context of an operator's functions, inside an iteration or outside."""
    if facts.superstep is None:
        return TaskRuntimeContext(facts, operator, index, parallelism, attempt)
    return SuperstepContext(facts, operator, index, parallelism, attempt, superstep=facts.superstep)


class FunctionFields:
    """The fields of an operator's function objects, before and after a superstep.

    Args:
        superstep: The superstep, which has the fields of the last one; None outside of iterations.
        operator: The operator, not yet opened.
        index: The subtask.
    """

    def __init__(self, superstep: Superstep | None, operator: TaskOperator, index: int) -> None:
        self._functions: Sequence[Function] = () if superstep is None else operator.functions
        carried = None if superstep is None else superstep.fields.get(OperatorSubtask(operator.number, index))
        if carried is not None:
            for function, fields in zip(self._functions, cloudpickle.loads(carried), strict=True):
                vars(function).clear()
                vars(function).update(fields)
        self._before = self._pickled()

    def changed(self) -> bytes | None:
        """Return the fields, pickled, if the superstep changed any; else None."""
        after = self._pickled()
        return None if after == self._before else after

    def _pickled(self) -> bytes:
        fields = [_without_context(function) for function in self._functions]
        if not any(fields):
            return b""
        try:
            return bytes(cloudpickle.dumps(fields))
        except Exception:  # a user's object may raise anything; `open` creates connections and locks again
            return bytes(cloudpickle.dumps([_picklable(each) for each in fields]))


def _without_context(function: Function) -> dict[str, Any]:
    return {name: value for name, value in vars(function).items() if not isinstance(value, RuntimeContext)}


def _picklable(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in fields.items():
        try:
            cloudpickle.dumps(value)
        except Exception:  # as above: `open` creates a field that cannot be pickled
            continue
        kept[name] = value
    return kept
