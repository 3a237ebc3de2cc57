"""Crosses: all pairs of two data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ekorn.batch.plan.data_set_specs import CrossSpec
from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.joins import Inputs, ProjectedPairs
from ekorn.functions.data_sets.data_set_functions import CrossFunction
from ekorn.program.checks.argument_checks import check_function, check_single_result
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.type_information import TypeInformation

__all__ = ["CrossOperator"]


class CrossOperator(DataSet):
    """All pairs, (first, second); `using` or a projection makes something else of them."""

    def __init__(self, first: DataSet, second: DataSet, broadcast_first: bool | None) -> None:
        first.check_other("cross", second)
        self._inputs = Inputs(first, second)
        self._cross = CrossSpec(None, broadcast_first)
        types = [first.get_type(), second.get_type()]
        known = None if None in types else TupleTypeInfo([each for each in types if each is not None])
        super().__init__(first.environment, "Cross", self._cross, tuple(self._inputs), known)

    def using(
        self, func: CrossFunction | Callable[[Any, Any], Any], output_type: TypeInformation | None = None
    ) -> DataSet:
        """Call a function with each pair."""
        check_function("using", func, CrossFunction, 2)
        check_single_result("using", func, "cross")
        spec = replace(self._cross, function=func)
        return DataSet(self.environment, "Cross", spec, tuple(self._inputs)).declared("using", output_type)

    with_ = using

    def project_first(self, *fields: int) -> ProjectedPairs:
        """Make tuples that begin with fields of the first input, or with its whole record."""
        return ProjectedPairs(self._inputs, self._cross, "Cross").project_first(*fields)

    def project_second(self, *fields: int) -> ProjectedPairs:
        """Make tuples that begin with fields of the second input, or with its whole record."""
        return ProjectedPairs(self._inputs, self._cross, "Cross").project_second(*fields)
