"""Functions by the batch: the user's own, and expressions of PyArrow that keep rows and make columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.columns.column_batch import ColumnBatch, Kinds
from ekorn.columns.declared import as_declared, fitted
from ekorn.columns.expressions import evaluated
from ekorn.columns.libraries import frames_of
from ekorn.columns.row_columns import RowColumns
from ekorn.errors import ColumnValueError, InvalidProgramError
from ekorn.functions.batch_function import BatchFunction
from ekorn.graph.column_specs import MapBatchesSpec, SelectColumnsSpec, SelectRowsSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns.column_operator import ColumnOperator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.types.row import RowKind


class MapBatchesOperator(ColumnOperator):
    """Calls the user's function with each batch."""

    def __init__(self, operator: Operator, spec: MapBatchesSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._function = spec.function
        self._call: Callable[[Any], Any] = (
            spec.function.map_batch if isinstance(spec.function, BatchFunction) else spec.function
        )
        self._schema = RowColumns(spec.row_type).schema
        self._frames = frames_of(spec.library)

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def process(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        result = self._call(self._frames.given(batch.data))
        for each in self._frames.parts(result):
            yield from self._checked(batch, each).bounded()

    def _checked(self, batch: ColumnBatch, result: pa.RecordBatch) -> ColumnBatch:
        try:
            data = as_declared(result, self._schema)
        except ColumnValueError as error:
            if result.num_rows != len(batch):  # the value is not in a row of the input
                error.row_in_batch = None
            raise
        return of_batch(batch, data)


def of_batch(batch: ColumnBatch, data: pa.RecordBatch) -> ColumnBatch:
    """Return the rows that a function made of a batch, with timestamps and kinds.

    As many rows as came in keep their timestamps. Others get the highest, which no watermark has passed.
    """
    if data.num_rows == len(batch):
        return batch.with_data(data)
    if not data.num_rows:
        return batch.slice(0, 0).with_data(data)
    times = None if batch.times is None else np.full(data.num_rows, batch.times.max(), dtype=np.int64)
    return ColumnBatch(data, times, _kind_of_all(batch, data.num_rows))


def _kind_of_all(batch: ColumnBatch, count: int) -> Kinds | None:
    """Return the kinds of some rows that were made of a batch whose rows have one kind.

    Raises:
        InvalidProgramError: They have several kinds, and nothing says which row has which.
    """
    if batch.kinds is None:
        return None
    found = np.unique(batch.kinds)
    if len(found) > 1:
        kinds = ", ".join(str(RowKind(kind)) for kind in found.tolist())
        raise InvalidProgramError(
            f"a batch function returned {count} rows for {len(batch)} rows of the kinds {kinds}, so the kinds of its "
            "rows are not known; return as many rows as were given, or select rows by filter() before"
        )
    return np.full(count, found[0], dtype=np.int8)


class SelectRowsOperator(ColumnOperator):
    """Keeps the rows for which an expression is true."""

    def __init__(self, operator: Operator, spec: SelectRowsSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._condition = spec.condition

    def process(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        if batch.times is None and batch.kinds is None:
            origin = batch.origin and batch.origin.some()
            yield ColumnBatch(batch.data.filter(self._condition), origin=origin)
        else:
            yield batch.filter(evaluated(batch.data, [self._condition])[0])


class SelectColumnsOperator(ColumnOperator):
    """Makes columns from columns."""

    def __init__(self, operator: Operator, spec: SelectColumnsSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._schema = RowColumns(spec.row_type).schema
        self._columns = spec.columns
        self._expressions = {name: each for name, each in spec.columns if not isinstance(each, str)}

    def process(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        computed = iter(self._computed(batch.data))
        arrays = [batch.data.column(each) if isinstance(each, str) else next(computed) for _, each in self._columns]
        pairs = zip(arrays, self._schema, strict=True)
        columns = [fitted(array, field, "project() computed") for array, field in pairs]
        yield batch.with_data(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def _computed(self, data: pa.RecordBatch) -> list[pa.Array]:
        try:
            return evaluated(data, list(self._expressions.values()))
        except pa.ArrowException:
            for name, each in self._expressions.items():  # to name the column
                try:
                    evaluated(data, [each])
                except pa.ArrowException as error:
                    raise type(error)(f"column {name!r}: {error}") from None
            raise
