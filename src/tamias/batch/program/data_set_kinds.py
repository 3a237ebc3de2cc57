"""Makes the builders that a `DataSet` returns, whose modules import `DataSet` themselves."""

from __future__ import annotations

from tamias.batch.plan.keys import Keys
from tamias.batch.program.data_set import DataSet
from tamias.batch.program.grouping import Grouping

__all__ = ["DataSetKinds"]


class DataSetKinds:
    """The environment has one, so that `DataSet` needs to import none of the builders."""

    def grouping(self, data_set: DataSet, keys: Keys) -> Grouping:
        """Return the records of a data set by key."""
        return Grouping(data_set, keys)
