"""Iterations: a part of a program that runs repeatedly over its own result.

    step = initial.iterate(10)                        # a data set inside the iteration
    result = step.close_with(step.map(improve))       # a data set after it

A data set is inside an iteration if it is made from the iteration's data. It can be used there only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from ekorn.batch.plan.iteration_specs import (
    BulkIterationSpec,
    Convergence,
    DeltaIterationSpec,
    IterationInputSpec,
    IterationLimits,
)
from ekorn.batch.plan.operators import PlanOperator, outside_inputs
from ekorn.batch.plan.record_keys import FieldKeys
from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.data_set_core import DataSetCore
from ekorn.batch.program.iteration_scope import IterationScope, scope_of
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.iteration_context import Aggregator, ConvergenceCriterion

if TYPE_CHECKING:
    from ekorn.batch.plan.data_set_specs import Spec

Drawn = Callable[[Mapping[DataSetCore, PlanOperator], tuple[PlanOperator, ...]], BulkIterationSpec | DeltaIterationSpec]

__all__ = ["DeltaIteration", "IterationResult", "IterativeDataSet", "SolutionSet"]


class IterationAggregators:
    """The aggregators of an iteration, and the criterion that ends it by one of them."""

    def __init__(self) -> None:
        self._aggregators: dict[str, Aggregator[Any]] = {}
        self._convergence: Convergence | None = None

    def register_aggregator(self, name: str, aggregator: Aggregator[Any]) -> Self:
        """Register an aggregator, which functions of the iteration get by its name."""
        if not isinstance(aggregator, Aggregator):
            raise TypeError(f"register_aggregator() takes an Aggregator, got {aggregator!r}")
        if name in self._aggregators:
            raise InvalidProgramError(f"the iteration already has an aggregator {name!r}; use another name")
        self._aggregators[name] = aggregator
        return self

    def register_aggregation_convergence_criterion(
        self, name: str, aggregator: Aggregator[Any], criterion: ConvergenceCriterion[Any]
    ) -> Self:
        """Register an aggregator, and end the iteration when the criterion says so of its merged value."""
        if not isinstance(criterion, ConvergenceCriterion):
            raise TypeError(
                f"register_aggregation_convergence_criterion() takes a ConvergenceCriterion, got {criterion!r}"
            )
        if self._convergence is not None:
            raise InvalidProgramError(
                f"the iteration already has a convergence criterion, for aggregator {self._convergence.aggregator!r}"
            )
        self.register_aggregator(name, aggregator)
        self._convergence = Convergence(name, criterion)
        return self

    def _limits(self, max_iterations: int) -> IterationLimits:
        return IterationLimits(max_iterations, dict(self._aggregators), self._convergence)


class IterativeDataSet(DataSet, IterationAggregators):
    """The data of a bulk iteration inside it: first the initial data, then the result of each superstep."""

    def __init__(self, initial: DataSet, max_iterations: int) -> None:
        IterationAggregators.__init__(self)
        self._initial = initial
        self._max_iterations = checked_max_iterations("iterate", max_iterations)
        initial.scope.refuse_nested("iterate")
        super().__init__(initial.environment, "BulkIteration", IterationInputSpec(), known_type=initial.get_type())
        self.scope = IterationScope(self, self.site)
        self._closed_at: str | None = None

    def get_max_iterations(self) -> int:
        """Return the largest number of supersteps."""
        return self._max_iterations

    def close_with(self, iteration_result: DataSet, termination_criterion: DataSet | None = None) -> DataSet:
        """End the body of the iteration; return its final result.

        Args:
            iteration_result: The result of a superstep, with which the next superstep begins.
            termination_criterion: If given, the iteration ends after the first superstep in which it is empty.
        """
        refuse_second_close(self._closed_at)
        self._check_end(iteration_result, "the result")
        if termination_criterion is not None:
            self._check_end(termination_criterion, "the termination criterion")
        ends = (iteration_result,) if termination_criterion is None else (iteration_result, termination_criterion)
        result = IterationResult((self,), (self._initial,), ends, self._drawn)
        self._closed_at = result.site
        return result

    def _check_end(self, end: DataSet, what: str) -> None:
        self.check_other("close_with", end)
        self.scope.check_end("close_with", end, what)

    def _drawn(self, made: Mapping[DataSetCore, PlanOperator], ends: tuple[PlanOperator, ...]) -> BulkIterationSpec:
        criterion = ends[1] if len(ends) > 1 else None
        return BulkIterationSpec(made[self], ends[0], criterion, self._limits(self._max_iterations))


class SolutionSet(DataSet):
    """The solution set of a delta iteration inside it. It can be joined and co-grouped by its keys, nothing else."""

    def __init__(self, iteration: DeltaIteration, initial: DataSet) -> None:
        super().__init__(initial.environment, "SolutionSet", IterationInputSpec(), known_type=initial.get_type())
        self.solution_keys = iteration.keys
        self.scope = IterationScope(iteration, self.site)


class WorkSet(DataSet):
    """The work set of a delta iteration inside it."""

    def __init__(self, iteration: DeltaIteration, initial: DataSet) -> None:
        super().__init__(initial.environment, "WorkSet", IterationInputSpec(), known_type=initial.get_type())
        self.scope = IterationScope(iteration, self.site)


class DeltaIteration(IterationAggregators):
    """A delta iteration that is being drawn.

    Each superstep computes changes to the solution set from the work set, and the next work set. It touches only the
    keys that the work set leads to.
    """

    def __init__(self, initial: DataSet, work_set: DataSet, max_iterations: int, keys: FieldKeys) -> None:
        super().__init__()
        initial.check_other("iterate_delta", work_set)
        initial.scope.refuse_nested("iterate_delta")
        work_set.scope.refuse_nested("iterate_delta")
        self.keys = keys
        self._max_iterations = checked_max_iterations("iterate_delta", max_iterations)
        self._initial = initial
        self._initial_work = work_set
        self._solution = SolutionSet(self, initial)
        self._work = WorkSet(self, work_set)
        self._name: str | None = None
        self._parallelism = -1
        self._closed_at: str | None = None

    def get_solution_set(self) -> SolutionSet:
        """Return the solution set as the last superstep left it."""
        return self._solution

    def get_workset(self) -> DataSet:
        """Return the work set that the last superstep made."""
        return self._work

    def get_initial_solution_set(self) -> DataSet:
        """Return the data set that the iteration began with."""
        return self._initial

    def get_initial_workset(self) -> DataSet:
        """Return the work set of the first superstep."""
        return self._initial_work

    def name(self, name: str) -> Self:
        """Set the name that errors and plans show."""
        self._name = name
        return self

    def parallelism(self, parallelism: int) -> Self:
        """Set the number of partitions of the solution set."""
        self._parallelism = parallelism
        return self

    def close_with(self, solution_set_delta: DataSet, new_workset: DataSet) -> DataSet:
        """End the body of the iteration; return the final solution set.

        Args:
            solution_set_delta: Elements that are put into the solution set by key after each superstep.
            new_workset: The work set of the next superstep. The iteration ends when it is empty.
        """
        refuse_second_close(self._closed_at)
        for end, what in ((solution_set_delta, "the delta"), (new_workset, "the next work set")):
            self._work.check_other("close_with", end)
            self._work.scope.check_end("close_with", end, what)
        for each in (*made_from(solution_set_delta), *made_from(new_workset)):
            # Checked again: with_partitioner() may have changed a join since.
            scope_of(each.get_name(), each.spec, each.inputs)
        if self._work not in made_from(new_workset):
            raise InvalidProgramError(
                "close_with(): the next work set does not depend on the work set; make it from get_workset()"
            )
        initial = (self._initial, self._initial_work)
        result = IterationResult((self._solution, self._work), initial, (solution_set_delta, new_workset), self._drawn)
        if self._name is not None:
            result.name(self._name)
        result.set_parallelism(self._parallelism)
        self._closed_at = result.site
        return result

    def _drawn(self, made: Mapping[DataSetCore, PlanOperator], ends: tuple[PlanOperator, ...]) -> DeltaIterationSpec:
        delta, next_work = ends
        return DeltaIterationSpec(
            made[self._solution], made[self._work], delta, next_work, self.keys, self._limits(self._max_iterations)
        )


class IterationResult(DataSet):
    """The result of an iteration: an operator of the plan, after everything that its body reads from outside.

    Args:
        heads: The data sets that stand for the iteration's data. The first has the type of the result.
        initial: The data that the iteration begins with.
        ends: The data sets that end the body.
        drawn: Makes the operator's spec from the plan's operators of the data sets.
    """

    def __init__(
        self,
        heads: tuple[DataSet, ...],
        initial: tuple[DataSet, ...],
        ends: tuple[DataSet, ...],
        drawn: Drawn,
    ) -> None:
        kind = "DeltaIteration" if isinstance(heads[0], SolutionSet) else "BulkIteration"
        super().__init__(heads[0].environment, kind, IterationInputSpec(), known_type=heads[0].get_type())
        # The inputs in the program; those of the operator are found when it is drawn.
        self.inputs = (*initial, *heads, *ends)
        self._initial = initial
        self._ends = ends
        self._drawn_spec = drawn

    def drawn(self, made: Mapping[DataSetCore, PlanOperator]) -> tuple[Spec, tuple[PlanOperator, ...]]:
        """Return the operator's spec and inputs: the initial data, then what the body reads from outside."""
        spec = self._drawn_spec(made, tuple([made[each] for each in self._ends]))
        initial = [made[each] for each in self._initial]
        return spec, (*initial, *[each for each in outside_inputs(spec) if each not in initial])


def checked_max_iterations(call: str, max_iterations: int) -> int:
    """Return the largest number of supersteps, if it is one."""
    if not isinstance(max_iterations, int) or isinstance(max_iterations, bool) or max_iterations < 1:
        raise InvalidProgramError(f"{call}() takes the number of supersteps, at least 1, got {max_iterations!r}")
    return max_iterations


def refuse_second_close(closed_at: str | None) -> None:
    """Refuse to close an iteration that was closed before."""
    if closed_at is not None:
        raise InvalidProgramError(f"close_with(): the iteration was already closed at {closed_at}; create another one")


def made_from(data_set: DataSetCore) -> set[DataSetCore]:
    """Return a data set and all that it is made from, up to the results of earlier iterations."""
    pending, seen = [data_set], {data_set}
    while pending:
        each = pending.pop()
        for needed in () if isinstance(each, IterationResult) else each.upstream():
            if needed not in seen:
                seen.add(needed)
                pending.append(needed)
    return {each for each in seen if not isinstance(each, IterationResult)}
