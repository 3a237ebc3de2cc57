"""The iteration that a data set is inside of, and the calls that are refused because of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ekorn.batch.plan.data_set_specs import CoGroupSpec, JoinKind, JoinSpec, Spec
from ekorn.errors import InvalidProgramError

if TYPE_CHECKING:
    from ekorn.batch.program.data_set_core import DataSetCore

__all__ = ["OUTSIDE", "IterationScope", "scope_of"]


@dataclass(frozen=True, eq=False)
class IterationScope:
    """The iteration that a data set is inside of.

    Attributes:
        iteration: The iteration; None for data sets outside of all iterations.
        site: The line of the program that began it.
    """

    iteration: object
    site: str

    def refuse_nested(self, call: str) -> None:
        """Refuse to begin an iteration with data of an iteration that is not closed."""
        if self.iteration is not None:
            raise InvalidProgramError(
                f"{call}(): the data set is inside the iteration of {self.site}, and iterations cannot be nested; "
                "begin with a data set from outside, or with the result of close_with()"
            )

    def refuse_outside(self, what: str) -> None:
        """Refuse to use a data set of an iteration after it."""
        if self.iteration is not None:
            raise InvalidProgramError(
                f"{what} uses a data set inside the iteration of {self.site}, which exists only there; "
                "use the data set that close_with() returns"
            )

    def check_end(self, call: str, end: DataSetCore, what: str) -> None:
        """Check that a data set can end the body of this iteration."""
        if end.solution_keys is not None:
            raise InvalidProgramError(f"{call}(): {what} is the solution set itself, which can only be joined")
        if end.scope.iteration is not self.iteration:
            raise InvalidProgramError(
                f"{call}(): {what} does not depend on the data of the iteration of {self.site}; "
                "make it from the data sets that the iteration returned"
            )


OUTSIDE = IterationScope(None, "")


def scope_of(kind: str, spec: Spec, inputs: Sequence[DataSetCore]) -> IterationScope:
    """Return the scope of a new data set.

    Raises:
        InvalidProgramError: Its inputs are of two iterations; or one is a solution set, and this is not a join or
            co-group by the keys of the solution set.
    """
    found = OUTSIDE
    for each in inputs:
        if each.solution_keys is not None:
            _check_use_of_solution_set(kind, spec, inputs)
        if each.scope.iteration is None or each.scope.iteration is found.iteration:
            continue
        if found.iteration is not None:
            raise InvalidProgramError(
                f"{kind}: the data sets belong to two iterations, of {found.site} and {each.scope.site}; "
                "iterations cannot be nested: close one of them, and use its result"
            )
        found = each.scope
    return found


def _check_use_of_solution_set(kind: str, spec: Spec, inputs: Sequence[DataSetCore]) -> None:
    number = next(number for number, each in enumerate(inputs) if each.solution_keys is not None)
    if any(each.solution_keys is not None for each in inputs[number + 1 :]):
        raise InvalidProgramError(f"{kind}: the solution set cannot be combined with itself")
    if not isinstance(spec, CoGroupSpec) and not (isinstance(spec, JoinSpec) and spec.kind is JoinKind.INNER):
        raise InvalidProgramError(
            f"{kind}: the solution set of a delta iteration can be used only in join() and co_group(); "
            "join it with the work set, and continue with the result"
        )
    keys = spec.first_keys if number == 0 else spec.second_keys
    if keys != inputs[number].solution_keys:
        raise InvalidProgramError(
            f"{kind}: the solution set is indexed by the keys {inputs[number].solution_keys} and cannot be searched "
            f"by {keys}; join it by the keys that were passed to iterate_delta()"
        )
    if spec.partitioner is not None:
        raise InvalidProgramError(f"{kind}: the solution set is already partitioned by the hash of its keys")
