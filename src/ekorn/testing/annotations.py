"""Finds annotations of fields that are not true, by running a DataSet program in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ekorn.batch.plan.data_set_specs import CoGroupSpec, CrossSpec, FlatMapSpec, GroupReduceSpec, JoinSpec, MapSpec
from ekorn.batch.plan.iteration_specs import BulkIterationSpec, DeltaIterationSpec
from ekorn.batch.plan.operators import Plan, PlanOperator, body_of
from ekorn.batch.plan.partitioning import ForwardedFields
from ekorn.batch.plan.record_keys import read_path
from ekorn.batch.planner.plan_runner import PlanResult, RunSettings
from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.runner import plans_run_by
from ekorn.batch.tasks.task_operator import method
from ekorn.errors import InvalidProgramError, preview
from ekorn.functions.record_functions import Function
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.testing.local_partitions import run_in_process
from ekorn.types.row import Row

__all__ = ["check_annotations"]


def check_annotations(data_set: DataSet) -> None:
    """Run what a data set needs, and compare what annotated functions return with what they were given.

    Checked are the functions of map, flat map, join, cross, group reduce and co-group, also inside iterations. Each
    result of a group must be able to come from one record of the group.

    Raises:
        JobExecutionError: A function did not copy a field that its annotation names. The error names the operator and
            shows the records.
    """
    with plans_run_by(_run_checked):
        data_set.collect()


def _run_checked(plan: Plan, settings: RunSettings) -> PlanResult:
    made: dict[PlanOperator, PlanOperator] = {}
    for operator in plan.operators():
        if isinstance(operator.spec, BulkIterationSpec | DeltaIterationSpec):
            for inside in body_of(operator.spec):
                made[inside] = _rebuilt(inside, made)
        made[operator] = _rebuilt(operator, made)
    return run_in_process(Plan(tuple([made[sink] for sink in plan.sinks])), settings)


def _rebuilt(operator: PlanOperator, made: Mapping[PlanOperator, PlanOperator]) -> PlanOperator:
    """Return an operator whose function is checked, over what its inputs were rebuilt to."""
    return replace(
        operator,
        spec=_checking(operator, made),
        inputs=tuple([made[each] for each in operator.inputs]),
        broadcasts={name: made[each] for name, each in operator.broadcasts.items()},
    )


def _checking(operator: PlanOperator, made: Mapping[PlanOperator, PlanOperator]) -> Any:
    spec = operator.spec
    match spec:
        case BulkIterationSpec():
            criterion = None if spec.criterion is None else made[spec.criterion]
            return replace(spec, partial=made[spec.partial], result=made[spec.result], criterion=criterion)
        case DeltaIterationSpec():
            return replace(
                spec,
                solution=made[spec.solution],
                work=made[spec.work],
                delta=made[spec.delta],
                next_work=made[spec.next_work],
            )
    if not operator.forwarded or getattr(spec, "function", None) is None:
        return spec
    match spec:
        case GroupReduceSpec():
            return replace(spec, function=_CheckedFunction(spec.function, operator.forwarded), combinable=False)
        case JoinSpec():
            return replace(spec, function=_CheckedFunction(spec.function, operator.forwarded, flat=spec.flat))
        case MapSpec() | FlatMapSpec() | CrossSpec() | CoGroupSpec():
            return replace(spec, function=_CheckedFunction(spec.function, operator.forwarded))
    return spec


class _CheckedFunction(Function):
    """Calls a function, and compares its results with its arguments."""

    def __init__(self, function: Any, forwarded: Sequence[ForwardedFields], *, flat: bool = False) -> None:
        self._function = function
        self._forwarded = tuple(forwarded)
        self._flat = flat

    def set_runtime_context(self, context: RuntimeContext) -> None:
        if isinstance(self._function, Function):
            self._function.set_runtime_context(context)

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._function, Function):
            self._function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self._function, Function):
            self._function.close()

    def map(self, value: Any) -> Any:
        (result,) = self._compared([method(self._function, "map")(value)], [value])
        return result

    def flat_map(self, value: Any) -> Iterable[Any]:
        return self._compared(method(self._function, "flat_map")(value), [value])

    def join(self, first: Any, second: Any) -> Any:
        found = method(self._function, "join")(first, second)
        if self._flat:
            return self._compared(found, [first], [second])
        (result,) = self._compared([found], [first], [second])
        return result

    def cross(self, first: Any, second: Any) -> Any:
        (result,) = self._compared([method(self._function, "cross")(first, second)], [first], [second])
        return result

    def reduce(self, values: Iterator[Any]) -> Iterable[Any]:
        group = list(values)
        return self._compared(method(self._function, "reduce")(iter(group)), group)

    def co_group(self, first: Iterator[Any], second: Iterator[Any]) -> Iterable[Any]:
        groups = list(first), list(second)
        return self._compared(method(self._function, "co_group")(iter(groups[0]), iter(groups[1])), *groups)

    def _compared(self, results: Iterable[Any] | None, *inputs: list[Any]) -> list[Any]:
        found = list(results or ())
        for forwarded, records in zip(self._forwarded, inputs, strict=True):
            if records == [None]:
                continue  # the missing side of an outer join, of which there is nothing to copy
            for result in found:
                if not any(_is_copied(forwarded, record, result) for record in records):
                    raise InvalidProgramError(
                        f"the annotation of forwarded fields ({_described(forwarded)}) is not true: "
                        f"the function got {preview(records[:3])} and returned {preview(result)}"
                    )
        return found


def _is_copied(forwarded: ForwardedFields, before: Any, after: Any) -> bool:
    if not forwarded.everything:
        moved = (forwarded.moved or {}).items()
        return all(read_path(before, old) == read_path(after, new) for old, news in moved for new in news)
    if not forwarded.changed:
        return bool(before == after)
    return all(read_path(before, path) == read_path(after, path) for path in _fields(before) if forwarded.of(path))


def _fields(record: Any) -> list[tuple[int | str, ...]]:
    if isinstance(record, (tuple, list, Row)):
        return [(number,) for number in range(len(record))]
    return [(name,) for name in (record if isinstance(record, dict) else vars(record))]


def _described(forwarded: ForwardedFields) -> str:
    """Return what the annotation claims, for error messages."""
    if forwarded.everything:
        return f"all fields but {', '.join(map(_text, forwarded.changed))}" if forwarded.changed else "*"
    moved = (forwarded.moved or {}).items()
    return "; ".join(f"{_text(old)}->{_text(new)}" for old, news in moved for new in news)


def _text(path: tuple[int | str, ...]) -> str:
    return ".".join(map(str, path)) or "*"
