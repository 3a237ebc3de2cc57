"""A user's `BatchAggregate` as an aggregate of rows, and as a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.arrow_columns import arrow_column
from ekorn.columns.kernels import Kernel
from ekorn.columns.key_words import Rows
from ekorn.columns.row_columns import RowColumns
from ekorn.columns.segments import Segments
from ekorn.errors import InvalidProgramError
from ekorn.functions.batch_aggregate import BatchAggregate
from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.record_fields import read_field
from ekorn.types.data_type import DataType
from ekorn.types.data_types import RowField, RowType

__all__ = ["AdaptedAggregate", "BatchAggregateKernel"]

_FIRST_KEYS = 64


@dataclass(frozen=True)
class AdaptedAggregate(ColumnAggregate):
    """A `BatchAggregate`, called with one row at a time.

    Args:
        user: The aggregate.
        inputs: The types of the columns that it reads, by position: a column may be read twice.
        result: The type of its results.
    """

    user: BatchAggregate
    inputs: RowType
    result_data_type: DataType

    @property
    def columns(self) -> tuple[str, ...]:
        return self.user.columns

    @property
    def width(self) -> int:  # type: ignore[override]  # of the user's arrays
        return len(self._one)

    @cached_property
    def _one(self) -> list[Any]:
        return self.arrays(1)

    @cached_property
    def _reads(self) -> RowColumns:
        return RowColumns(self.inputs)

    @cached_property
    def result_arrow(self) -> pa.DataType:
        """The type of the results in columns."""
        return RowColumns(RowType([RowField("result", self.result_data_type)])).schema.types[0]

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("column", "user", "inputs", "result_data_type")}

    def arrays(self, count: int) -> list[Any]:
        """Return the accumulators of some keys without rows.

        Raises:
            InvalidProgramError: `create` returned something else.
        """
        made = self.user.create(count)
        arrays = list(made) if isinstance(made, list | tuple) else []
        if not arrays or not all(isinstance(each, np.ndarray) and each.shape == (count,) for each in arrays):
            raise InvalidProgramError(
                f"create({count}) of {self.user} must return a list of NumPy arrays with {count} elements each, and "
                f"returned {made!r}"
            )
        return arrays

    def results(self, accumulators: list[Any]) -> pa.Array:
        """Return the results of accumulators as a column.

        Raises:
            InvalidProgramError: `results` returned values of another type, or of another number.
        """
        found = self.user.results(accumulators)
        count = len(accumulators[0])
        try:
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            column = found if isinstance(found, pa.Array) else pa.array(found)
            if column.type != self.result_arrow:
                column = column.cast(self.result_arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
            raise InvalidProgramError(
                f"results() of {self.user} returned values that do not fit {self.result_data_type}, the type that "
                f"result_type() declares: {error}"
            ) from None
        if len(column) != count:
            raise InvalidProgramError(
                f"results() of {self.user} returned {len(column)} results for {count} accumulators; it must return one "
                "for each"
            )
        return column

    def create(self) -> tuple[Any, ...]:
        return tuple(array.tolist()[0] for array in self._one)

    def add(self, accumulator: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        arrays = self.filled([accumulator])
        self.user.add(arrays, np.zeros(1, dtype=np.int64), list(self._reads.batch([value]).columns))
        return tuple(array.tolist()[0] for array in arrays)

    def add_record(self, accumulator: tuple[Any, ...], record: Any) -> tuple[Any, ...]:
        return self.add(accumulator, tuple(read_field(record, name) for name in self.columns))

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        arrays = self.filled([one])
        self.user.merge(arrays, np.zeros(1, dtype=np.int64), self.filled([other]))
        return tuple(array.tolist()[0] for array in arrays)

    def result(self, accumulator: tuple[Any, ...]) -> Any:
        from_arrow = arrow_column(self.result_data_type, utc=True).from_arrow
        (value,) = self.results(self.filled([accumulator])).to_pylist()
        return value if value is None or from_arrow is None else from_arrow(value)

    def filled(self, accumulators: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the arrays with some accumulators."""
        arrays = self.arrays(len(accumulators))
        for array, values in zip(arrays, zip(*accumulators, strict=True), strict=True):
            for at, value in enumerate(values):  # one by one: an element may be a sequence itself
                array[at] = value
        return arrays

    def result_type(self, column: DataType) -> DataType:
        return self.result_data_type

    def __str__(self) -> str:
        return str(self.user)


class BatchAggregateKernel(Kernel):
    """The accumulators of a user's aggregate: the user's own arrays."""

    aggregate: AdaptedAggregate

    def __init__(self, aggregate: AdaptedAggregate, result_type: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        self._vectors = aggregate.arrays(_FIRST_KEYS)

    def argument(self, data: pa.RecordBatch, times: NDArray[np.int64] | None) -> Any:
        return [data.column(name) for name in self.aggregate.columns]

    def update(self, keys: Rows, column: Any) -> None:
        if len(keys):
            self.aggregate.user.add(self._vectors, keys, column)

    def running(self, segments: Segments, column: Any) -> pa.Array:
        """Take the first row of each key, then the second one, and so on: as many rows at once as there are keys."""
        ranks = segments.ranks()
        order = np.argsort(ranks, kind="stable")
        ends = np.cumsum(np.bincount(ranks)).tolist()
        parts, start = [], 0
        for end in ends:
            rows = order[start:end]
            keys = segments.keys[rows]
            self.update(keys, [each.take(pa.array(rows)) for each in column])
            parts.append(self.results(keys))
            start = end
        if not parts:
            return pa.array([], self.result_type)
        positions = np.empty(len(order), dtype=np.int64)
        positions[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(pa.array(positions))

    def results(self, keys: Rows) -> pa.Array:
        return self.aggregate.results([vector[keys] for vector in self._vectors])

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        return list(zip(*(vector[keys].tolist() for vector in self._vectors), strict=True))

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        for vector, given in zip(self._vectors, self.aggregate.filled(accumulators), strict=True):
            vector[keys] = given

    def keep(self, keys: Rows) -> None:
        fresh = self.aggregate.arrays(max(len(keys), _FIRST_KEYS))
        for new, vector in zip(fresh, self._vectors, strict=True):
            new[: len(keys)] = vector[keys]
        self._vectors = fresh

    def put_back(self, keys: Rows, kept: list[Any], *, count: int) -> None:
        super().put_back(keys, kept, count=count)
        for vector, fresh in zip(self._vectors, self.aggregate.arrays(len(self._vectors[0]) - count), strict=True):
            vector[count:] = fresh

    def make_room(self, keys: int) -> None:
        size = len(self._vectors[0])
        if size < keys:
            more = self.aggregate.arrays(max(keys, _FIRST_KEYS, size * 9 // 8) - size)
            self._vectors = [np.concatenate(pair) for pair in zip(self._vectors, more, strict=True)]
