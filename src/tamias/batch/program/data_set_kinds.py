"""Makes the builders that a `DataSet` returns, whose modules import `DataSet` themselves."""

from __future__ import annotations

from tamias.batch.plan.keys import FieldKeys, Keys
from tamias.batch.program.data_set import DataSet
from tamias.batch.program.grouping import Grouping
from tamias.batch.program.iterations import DeltaIteration, IterativeDataSet

__all__ = ["DataSetKinds"]


class DataSetKinds:
    """The environment has one, so that `DataSet` needs to import none of the builders."""

    def grouping(self, data_set: DataSet, keys: Keys) -> Grouping:
        """Return the records of a data set by key."""
        return Grouping(data_set, keys)

    def bulk_iteration(self, initial: DataSet, max_iterations: int) -> IterativeDataSet:
        """Return the data set inside a new bulk iteration."""
        return IterativeDataSet(initial, max_iterations)

    def delta_iteration(
        self, initial: DataSet, work_set: DataSet, max_iterations: int, keys: FieldKeys
    ) -> DeltaIteration:
        """Return a new delta iteration."""
        return DeltaIteration(initial, work_set, max_iterations, keys)
