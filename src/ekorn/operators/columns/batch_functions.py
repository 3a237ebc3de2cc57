"""Functions by the batch: the user's own, and expressions of PyArrow that keep rows and make columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.column_batch import ColumnBatch, Kinds
from ekorn.columns.declared import as_declared, fitted
from ekorn.columns.expressions import evaluated
from ekorn.columns.libraries import frames_of
from ekorn.columns.row_columns import RowColumns
from ekorn.errors import ColumnValueError, InvalidProgramError
from ekorn.functions.batch_function import BatchFunction, TableBatchFunction
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.state.state_descriptors import MapStateDescriptor
from ekorn.graph.column_specs import MapBatchesSpec, MapBatchesWithTableSpec, SelectColumnsSpec, SelectRowsSpec
from ekorn.graph.job_graph import Operator
from ekorn.keygroups import state_key
from ekorn.operators.co_streams import SECOND, TwoInputOperator
from ekorn.operators.columns.column_operator import ColumnOperator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type_info import data_type_of
from ekorn.types.data_types import RowType
from ekorn.types.row import RowKind


class _ForSide(ColumnBatch):
    """Rows for a side output, among the results of a function."""

    __slots__ = ("tag",)

    def __init__(self, tag: str, batch: ColumnBatch) -> None:
        super().__init__(batch.data, batch.times, batch.kinds, batch.origin)
        self.tag = tag


class MapBatchesOperator(ColumnOperator):
    """Calls the user's function with each batch."""

    emits_to_sides = True

    def __init__(
        self, operator: Operator, spec: MapBatchesSpec | MapBatchesWithTableSpec, environment: SubtaskEnvironment
    ) -> None:
        super().__init__(operator, environment)
        self._function = spec.function
        has_method = isinstance(spec.function, BatchFunction | TableBatchFunction)
        self._call: Callable[..., Any] = spec.function.map_batch if has_method else spec.function
        self._schema = RowColumns(spec.row_type).schema
        self._frames = frames_of(spec.library)
        self._side_schemas: dict[str, pa.Schema] = {}

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def process(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        for tag, part in _tagged(self._called(batch)):
            for each in self._frames.parts(part):
                if tag is None:
                    yield from self._checked(batch, each, self._schema).bounded()
                elif tag.tag_id in self.side_out:  # side outputs without a reader are dropped
                    found = self._checked(batch, each, self._side_schema(tag))
                    yield from (_ForSide(tag.tag_id, rows) for rows in found.bounded())

    def _called(self, batch: ColumnBatch) -> Any:
        return self._call(self._frames.given(batch.data))

    def _side_schema(self, tag: OutputTag) -> pa.Schema:
        schema = self._side_schemas.get(tag.tag_id)
        if schema is None:
            schema = self._side_schemas[tag.tag_id] = schema_of_side(tag)
        return schema

    def _checked(self, batch: ColumnBatch, result: pa.RecordBatch, schema: pa.Schema) -> ColumnBatch:
        try:
            data = as_declared(result, schema)
        except ColumnValueError as error:
            if result.num_rows != len(batch):  # the value is not in a row of the input
                error.row_in_batch = None
            raise
        return of_batch(batch, data)

    def _naming_rows(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        return self._without_sides(super()._naming_rows(batch))

    def _skipping_rows(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        return self._without_sides(super()._skipping_rows(batch))

    def _without_sides(self, results: Iterator[ColumnBatch]) -> Iterator[ColumnBatch]:
        """Yield the results, without those for side outputs, which are sent there."""
        for result in results:
            if isinstance(result, _ForSide):
                if len(result):
                    rows = ColumnBatch(result.data, result.times, result.kinds, result.origin)
                    self.side_out[result.tag](rows, None)
            else:
                yield result


class MapBatchesWithTableOperator(MapBatchesOperator, TwoInputOperator):
    """Calls the user's function with each batch and the table. The table is a broadcast state of the operator."""

    first_input = SECOND

    def __init__(self, operator: Operator, spec: MapBatchesWithTableSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._keys = RowColumns(RowType([spec.table_type[name] for name in spec.keys]))
        self._columns = RowColumns(spec.table_type)
        self._table: pa.RecordBatch | None = None  # None: the rows have changed since the last batch

    def open(self) -> None:
        self._rows = self.states.get_broadcast_state(MapStateDescriptor(_TABLE))
        super().open()

    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._keep, 'keep')}({value})")

    def _keep(self, batch: ColumnBatch) -> None:
        """Keep the rows of a batch in the table, or remove them if they say so."""
        keys = map(state_key, self._keys.values([batch.data.column(name) for name in self._keys.names]))
        rows = self._columns.values(batch.data.columns)
        kinds = repeat(RowKind.INSERT.value) if batch.kinds is None else batch.kinds.tolist()
        for key, row, kind in zip(keys, rows, kinds, strict=False):
            if kind in _REMOVING:
                if self._rows.contains(key):
                    self._rows.remove(key)
            else:
                self._rows.put(key, row)
        self._table = None

    def _called(self, batch: ColumnBatch) -> Any:
        if self._table is None:
            self._table = self._columns.batch(list(self._rows.values()))
        return self._call(self._frames.given(batch.data), self._frames.given(self._table))


_TABLE = "_table"
_REMOVING = (RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value)


def _tagged(results: Any) -> Iterator[tuple[OutputTag | None, Any]]:
    """Yield what a function returned, each part with the tag of its side output, or None."""
    if _is_tagged(results) or not isinstance(results, Iterator | list | tuple):
        results = (results,)
    for result in results:
        if _is_tagged(result):
            yield result
        else:
            yield None, result


def _is_tagged(result: Any) -> bool:
    return isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag)


def schema_of_side(tag: OutputTag) -> pa.Schema:
    """Return the columns of a side output.

    Raises:
        InvalidProgramError: The tag declares none. The program has declared them where it reads the side output.
    """
    if not isinstance(tag.type_info, RowTypeInfo):
        raise InvalidProgramError(
            f"the side output {tag.tag_id!r} is emitted with a tag that declares no columns; use the tag with which it "
            "is read"
        )
    row_type = data_type_of(tag.type_info, f"the side output {tag.tag_id!r}")
    assert isinstance(row_type, RowType), "the data type of rows"
    return RowColumns(row_type).schema


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
