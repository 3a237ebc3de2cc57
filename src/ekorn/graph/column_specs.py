"""Operators on streams of columns as values. `operators/columns/build.py` builds running operators from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.watermark_strategy import WatermarkStrategy
from ekorn.functions.windows.window_arithmetic import CountGrid, SessionGap, WindowGrid
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    from ekorn.graph.specs import WindowSpec

BatchLibrary = Literal["arrow", "pandas", "polars", "numpy"]


@dataclass(frozen=True)
class ToRowsSpec:
    """Turns columns into rows, each with its timestamp."""

    row_type: RowType


@dataclass(frozen=True)
class ToColumnsSpec:
    """Gathers rows into columns: `max_rows` at the most, and no longer than the rows that have arrived together."""

    row_type: RowType
    max_rows: int


@dataclass(frozen=True)
class MapBatchesSpec:
    """Calls a function with each batch, as the library's kind of table."""

    function: Any
    library: BatchLibrary
    row_type: RowType  # of the results


@dataclass(frozen=True)
class MapBatchesWithTableSpec:
    """Calls a function with each batch (input 0), and with the rows of a broadcast stream of columns (input 1).

    Args:
        keys: The columns that identify a row of the table: the latest one with the same values stays.
        table_type: The columns of the table.
    """

    function: Any
    library: BatchLibrary
    row_type: RowType  # of the results
    keys: tuple[str, ...]
    table_type: RowType


@dataclass(frozen=True)
class SelectRowsSpec:
    """Keeps the rows for which an expression of PyArrow is true."""

    condition: Any


@dataclass(frozen=True)
class SelectColumnsSpec:
    """Makes columns: each a column of the input by name, or an expression of PyArrow."""

    columns: tuple[tuple[str, Any], ...]
    row_type: RowType  # of the results


@dataclass(frozen=True)
class ColumnTimestampsSpec:
    """Takes timestamps from a column, and replaces the watermarks of the stream."""

    watermarks: WatermarkStrategy
    column: str


@dataclass(frozen=True)
class RollingAggregateSpec:
    """Aggregates per key, without windows, on columns or on rows.

    Args:
        aggregates: The aggregates by the names of their results.
        keys: The key columns.
        input_type: The columns of the input.
        row_type: The columns of the results: the keys, then the aggregates.
        emits: A result for `each` row, or for the `last` row of each key and batch.
        on_columns: Whether the input has columns.
        queryable_name: The name under which clients read the aggregates of a key; None if they cannot.
    """

    aggregates: tuple[tuple[str, ColumnAggregate], ...]
    keys: tuple[str, ...]
    input_type: RowType
    row_type: RowType
    emits: Literal["each", "last"]
    on_columns: bool
    queryable_name: str | None = None


@dataclass(frozen=True)
class WindowAggregateSpec:
    """Aggregates the rows of windows of columns, which fire at their end.

    Args:
        windows: The same windows on rows, whose state these have.
        arithmetic: Where windows start and end.
        aggregates: The aggregates by the names of their results.
        keys: The key columns; none if all rows have one key.
        input_type: The columns of the input.
        row_type: The columns of the results: the keys, the bounds of a window that is a span of time, the aggregates.
    """

    windows: WindowSpec
    arithmetic: WindowGrid | SessionGap | CountGrid
    aggregates: tuple[tuple[str, ColumnAggregate], ...]
    keys: tuple[str, ...]
    input_type: RowType
    row_type: RowType


@dataclass(frozen=True)
class KeyedBatchSpec:
    """Calls a function with each batch of columns, with state and timers per key.

    Args:
        function: A `KeyedBatchFunction`; a `KeyedCoBatchFunction` if there is a second input.
        keys: The key columns.
        input_type: The columns of the input.
        row_type: The columns of the results.
        second_keys: The key columns of the second input; none if there is none.
    """

    function: Any
    keys: tuple[str, ...]
    input_type: RowType
    row_type: RowType
    second_keys: tuple[str, ...] = ()


ColumnSpec = (
    ToRowsSpec
    | ToColumnsSpec
    | MapBatchesSpec
    | MapBatchesWithTableSpec
    | SelectRowsSpec
    | SelectColumnsSpec
    | ColumnTimestampsSpec
    | RollingAggregateSpec
    | WindowAggregateSpec
    | KeyedBatchSpec
)

CONVERSIONS = (ToRowsSpec, ToColumnsSpec)
"""Operators that are drawn where the form of a stream changes, and have no state."""

VectorPartitioner = Callable[[Any, int], Any]
"""Returns the subtask of each row, given the key column and the number of subtasks."""
