"""The operators of a plan: what the planner translates, and which of them belong to the body of an iteration.

The classes of the API are mutable until a program runs (`name()`, `set_parallelism()`). When it runs, a `Plan` is made
from them, which never changes. An operator that several others read is one object, so it is planned once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ekorn.batch.plan.data_set_specs import Spec
from ekorn.batch.plan.iteration_specs import BulkIterationSpec, DeltaIterationSpec
from ekorn.batch.plan.partitioning import ForwardedFields
from ekorn.types.type_information import TypeInformation

__all__ = ["Plan", "PlanOperator", "body_of", "outside_inputs"]

IterationSpec = BulkIterationSpec | DeltaIterationSpec


@dataclass(frozen=True, eq=False)
class PlanOperator:
    """One operator and its inputs.

    Attributes:
        name: The name that errors and Spark's pages show.
        spec: What it does.
        inputs: The operators whose records it reads.
        parallelism: The number of subtasks.
        type_info: The declared type of its records, or None.
        declares_type: Whether the program declared the type, so that records are checked against it.
        parameters: What `with_parameters` gave.
        broadcasts: The operators whose records its function can read whole, by the name of the variable.
        forwarded: For each input, the fields that the function copies unchanged.
        call_site: The line of the program that drew it, such as ``job.py:12``.
    """

    name: str
    spec: Spec
    inputs: tuple[PlanOperator, ...]
    parallelism: int
    type_info: TypeInformation | None = None
    declares_type: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    broadcasts: Mapping[str, PlanOperator] = field(default_factory=dict)
    forwarded: tuple[ForwardedFields, ...] = ()
    call_site: str = ""

    def upstream(self) -> tuple[PlanOperator, ...]:
        """Return every operator that this one reads: its inputs and its broadcast variables."""
        return (*self.inputs, *self.broadcasts.values())


@dataclass(frozen=True)
class Plan:
    """The operators that a job runs, by the sinks where they end."""

    sinks: tuple[PlanOperator, ...]

    def operators(self) -> Iterator[PlanOperator]:
        """Yield each operator once, after all that it reads."""
        seen: set[PlanOperator] = set()
        pending: list[tuple[PlanOperator, Iterator[PlanOperator]]] = []
        for sink in self.sinks:
            if sink in seen:
                continue
            seen.add(sink)
            pending.append((sink, iter(sink.upstream())))
            while pending:  # uses an explicit stack, because a plan may be deeper than Python recurses
                operator, rest = pending[-1]
                for each in rest:
                    if each not in seen:
                        seen.add(each)
                        pending.append((each, iter(each.upstream())))
                        break
                else:
                    pending.pop()
                    yield operator

    def consumers(self) -> dict[PlanOperator, int]:
        """Return how often each operator is read."""
        counted: dict[PlanOperator, int] = {}
        for operator in self.operators():
            counted.setdefault(operator, 0)
            for each in operator.upstream():
                counted[each] = counted.get(each, 0) + 1
        return counted


def outside_inputs(spec: IterationSpec) -> list[PlanOperator]:
    """Return the operators outside the body that the body reads, each once."""
    inside = body_of(spec)
    read = (each for operator in inside for each in operator.upstream() if each not in inside)
    return list(dict.fromkeys(read))


def body_of(spec: IterationSpec) -> dict[PlanOperator, None]:
    """Return the operators of a body: those that depend on the iteration's data, inputs first."""
    inside: dict[PlanOperator, None] = dict.fromkeys(_heads(spec))
    for operator in Plan(tuple(_results(spec))).operators():
        if any(each in inside for each in operator.upstream()):
            inside[operator] = None
    return inside


def _heads(spec: IterationSpec) -> Sequence[PlanOperator]:
    return [spec.partial] if isinstance(spec, BulkIterationSpec) else [spec.solution, spec.work]


def _results(spec: IterationSpec) -> Sequence[PlanOperator]:
    if isinstance(spec, DeltaIterationSpec):
        return [spec.delta, spec.next_work]
    return [spec.result] if spec.criterion is None else [spec.result, spec.criterion]
