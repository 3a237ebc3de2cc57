"""The kernel of each kind of aggregate."""

from __future__ import annotations

import pyarrow as pa

from ekorn.columns.batch_aggregates import AdaptedAggregate, BatchAggregateKernel
from ekorn.columns.kernels import Kernel, kernel_for
from ekorn.columns.sketch_kernels import ApproxDistinctKernel, DistinctKernel, QuantileKernel
from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.sketch_aggregates import ApproxCountDistinct, CountDistinct, Quantile

__all__ = ["chosen_kernel"]


def chosen_kernel(aggregate: ColumnAggregate, column_type: pa.DataType | None, result_type: pa.DataType) -> Kernel:
    """Return the kernel of an aggregate of a column.

    Args:
        aggregate: The aggregate.
        column_type: The type of the column; None for an aggregate of whole rows.
        result_type: The type of the results.
    """
    match aggregate:
        case AdaptedAggregate():
            return BatchAggregateKernel(aggregate, result_type)
        case Quantile():
            return QuantileKernel(aggregate, result_type, column_type)
        case CountDistinct():
            return DistinctKernel(aggregate, result_type, column_type)
        case ApproxCountDistinct():
            return ApproxDistinctKernel(aggregate, result_type, column_type)
    return kernel_for(aggregate, column_type, result_type)
