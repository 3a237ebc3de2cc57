"""A user's aggregate: the sum of the squares of a column, without nulls."""

import numpy as np

from ekorn.datastream.columns import BatchAggregate
from ekorn.table import DataTypes


class SumOfSquares(BatchAggregate):
    """Also keeps a text for each key, to have accumulators that are no numbers."""

    def create(self, count):
        texts = np.full(count, None, dtype=np.object_)
        texts[:] = "none"
        return [np.zeros(count, np.int64), texts]

    def add(self, accumulators, keys, columns):
        values = columns[0].fill_null(0).to_numpy()
        np.add.at(accumulators[0], keys, values * values)
        accumulators[1][keys] = "some"

    def merge(self, accumulators, keys, others):
        np.add.at(accumulators[0], keys, others[0])
        accumulators[1][keys] = np.where(others[1] == "some", "some", accumulators[1][keys])

    def results(self, accumulators):
        return accumulators[0]

    def result_type(self, columns):
        return DataTypes.BIGINT()
