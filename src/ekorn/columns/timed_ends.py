"""First and last values by timestamp, for BATCH mode.

There a stream of rows gets the rows of a key in the order of their timestamps. A stream of columns gets them in the
order of arrival, so that it need not hold them: `First` and `Last` keep the timestamp of their value beside it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.kernels import EndKernel, Kernel, is_plain
from ekorn.columns.key_words import Rows
from ekorn.columns.segments import Segments
from ekorn.functions.column_aggregates import ColumnAggregate, First, Last
from ekorn.types.data_type import DataType
from ekorn.types.time_bounds import MIN_TIMESTAMP

__all__ = ["TimedEnd", "TimedEndKernel", "by_time"]


@dataclass(frozen=True)
class TimedEnd(ColumnAggregate):
    """`First` or `Last` by timestamp. An accumulator is the value with its timestamp."""

    end: First | Last

    width = 2

    def create(self) -> tuple[Any, ...]:
        return (None, MIN_TIMESTAMP)

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        """Return the accumulator with one more value, given with its timestamp."""
        return self.merge(accumulator, value)

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        if one[0] is None or other[0] is None:
            return other if one[0] is None else one
        later = other[1] >= one[1]
        return other if later == isinstance(self.end, Last) else one

    def result_type(self, column: DataType) -> DataType:
        return self.end.result_type(column)


class TimedEndKernel(EndKernel):
    """The first or last values of any type by timestamp. It gives results at the end only."""

    def __init__(self, end: First | Last, column_type: pa.DataType, result_type: pa.DataType) -> None:
        super().__init__(TimedEnd(end.column, end), result_type)
        self._is_last = isinstance(end, Last)
        self._are_objects = not is_plain(column_type)
        known, times = self._vectors[1], np.zeros(len(self._vectors[1]), dtype=np.int64)
        values = np.zeros(len(known), dtype=np.object_) if self._are_objects else self._vectors[0]
        self._vectors = [values, known, times]

    def argument(self, data: pa.RecordBatch, times: NDArray[np.int64] | None) -> Any:
        return super().argument(data, times), times

    def _plain(self, column: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if not self._are_objects:
            return super()._plain(column)
        values = np.fromiter(column.to_pylist(), np.object_, len(column))
        return values, column.is_valid().to_numpy(zero_copy_only=False)

    def update(self, keys: Rows, column: Any) -> None:
        """Take rows: a column, and the timestamp of each row, or None."""
        values, valid = self._plain(column[0])
        times = np.full(len(keys), MIN_TIMESTAMP, dtype=np.int64) if column[1] is None else column[1]
        ends, known, kept = self._vectors
        before = kept[keys]
        wanted = valid & (~known[keys] | (times >= before if self._is_last else times < before))
        rows = np.flatnonzero(wanted)
        rows = rows[np.argsort(times[rows], kind="stable")]
        if not self._is_last:
            rows = rows[::-1]  # of several values for one key, the one assigned last stays: the first
        ends[keys[rows]], known[keys[rows]], kept[keys[rows]] = values[rows], True, times[rows]

    def running(self, segments: Segments, column: Any) -> pa.Array:
        raise AssertionError("in BATCH mode no result comes before the end of the input")

    def results(self, keys: Rows) -> pa.Array:
        if not self._are_objects:
            return super().results(keys)
        pairs = zip(self._vectors[0][keys].tolist(), self._vectors[1][keys].tolist(), strict=True)
        return pa.array([value if known else None for value, known in pairs], self.result_type)

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        return list(zip(self.results(keys).to_pylist(), self._vectors[2][keys].tolist(), strict=True))

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        super().load(keys, [(value,) for value, _ in accumulators])
        self._vectors[2][keys] = [time for _, time in accumulators]


def by_time(kernel: Kernel, column_type: pa.DataType | None) -> Kernel:
    """Return a kernel that goes by timestamps in place of one that goes by the order of rows."""
    if isinstance(kernel.aggregate, First | Last):
        assert column_type is not None, "the program checks that an aggregate names a column"
        return TimedEndKernel(kernel.aggregate, column_type, kernel.result_type)
    return kernel
