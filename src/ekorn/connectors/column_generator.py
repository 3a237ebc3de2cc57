"""`ColumnGeneratorSource`: columns that a function makes for ranges of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.connectors.number_seq import contiguous_ranges
from ekorn.errors import ConfigurationError, preview
from ekorn.extras import need
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

__all__ = ["ColumnGeneratorSource"]


class ColumnGeneratorSource(Source):
    """Generates rows as columns: `generator(first, count)` returns the rows with the numbers from `first` on.

    The same numbers must give the same rows: after a failure the source goes on from the last checkpoint.

    Example:
        >>> import pyarrow as pa
        >>> from ekorn.common import Types
        >>> numbers = ColumnGeneratorSource(
        ...     lambda first, count: pa.record_batch({"n": range(first, first + count)}),
        ...     10, Types.ROW_NAMED(["n"], [Types.LONG()]))
    """

    def __init__(self, generator: Callable[[int, int], Any], count: int, row_type: Any) -> None:
        """Create a source.

        Args:
            generator: Returns a RecordBatch of PyArrow, given the number of its first row and its number of rows.
            count: The number of rows.
            row_type: The columns: `DataTypes.ROW(...)` or `Types.ROW_NAMED(...)`.
        """
        need("columns", "ColumnGeneratorSource")
        if not callable(generator):
            raise TypeError(f"ColumnGeneratorSource takes a function of (first, count), got {generator!r}")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"ColumnGeneratorSource takes a count of at least 0, got {count!r}")
        from ekorn.types.composite_types import RowTypeInfo
        from ekorn.types.data_type_info import checked_row_type, data_type_of

        if isinstance(row_type, RowTypeInfo):
            row_type = data_type_of(row_type, "ColumnGeneratorSource")
        self._row_type: RowType = checked_row_type(row_type, "ColumnGeneratorSource")
        self._generator = generator
        self._count = count

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation:
        """Return the columns."""
        from ekorn.columns.row_columns import RowColumns

        return ColumnsTypeInfo(RowColumns(self._row_type).schema)

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        ranges = contiguous_ranges(0, self._count - 1, parallelism)
        return [Split(str(number), tuple(bounds)) for number, bounds in enumerate(ranges)]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        first, last = split.what
        from ekorn.columns.row_columns import RowColumns

        schema = RowColumns(self._row_type).schema
        return _GeneratorReader(self._generator, schema, first if position is None else position, last)

    def __repr__(self) -> str:
        return f"ColumnGeneratorSource({self._count} rows)"


class _GeneratorReader(SplitReader):
    """Reads a range; its position is the number of the next row."""

    def __init__(self, generator: Callable[[int, int], Any], schema: Any, first: int, last: int) -> None:
        self._generator = generator
        self._schema = schema
        self._next = first
        self._last = last

    def read(self, max_records: int) -> Batch:
        import pyarrow as pa

        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.declared import as_declared
        from ekorn.columns.origin import Origin

        count = min(max_records, self._last + 1 - self._next)
        if count <= 0:
            return Batch([])
        data = self._generator(self._next, count)
        if not isinstance(data, pa.RecordBatch) or data.num_rows != count:
            found = f"{data.num_rows} rows" if isinstance(data, pa.RecordBatch) else preview(data, 80)
            raise ConfigurationError(
                f"the generator of a ColumnGeneratorSource returned {found} for ({self._next}, {count}); it must "
                f"return a RecordBatch with {count} rows"
            )
        data = as_declared(data, self._schema, f"the generator returned for ({self._next}, {count})")
        origin = Origin("the generator", self._next, count)
        self._next += count
        return Batch([ColumnBatch(data, origin=origin)])

    def position(self) -> int:
        return self._next

    @property
    def finished(self) -> bool:
        return self._next > self._last
