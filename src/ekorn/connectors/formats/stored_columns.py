"""From the columns of a file to the declared columns of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ekorn.columns.arrow_columns import load_arrow
from ekorn.errors import ConfigurationError
from ekorn.storage.locations import shown
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StoredColumns"]


class StoredColumns:
    """The wanted columns of one file, by name. A column that the file lacks is null.

    Attributes:
        found: The names in the file of the wanted columns that it has.
    """

    def __init__(self, path: str, row_type: RowType, *, case_sensitive: bool) -> None:
        from ekorn.columns.row_columns import RowColumns

        self._path = path
        self._schema: pa.Schema = RowColumns(row_type).schema
        self._case_sensitive = case_sensitive
        self.found: list[str] = []
        self._stored_name: dict[str, str | None] = {}

    def find(self, names: Sequence[str]) -> None:
        """Find the wanted columns among those of the file."""
        by_name = {name if self._case_sensitive else name.lower(): name for name in names}
        wanted = self._schema.names
        self._stored_name = {name: by_name.get(name if self._case_sensitive else name.lower()) for name in wanted}
        self.found = [name for name in self._stored_name.values() if name is not None]

    def batch(self, stored: pa.RecordBatch) -> pa.RecordBatch:
        """Return the wanted columns of some rows.

        A column with a value that does not fit keeps its type, so that the operator of the source names the row.

        Raises:
            ConfigurationError: A column has another type.
        """
        pa = load_arrow("a file of columns")
        arrays = [self._array(stored, field) for field in self._schema]
        fields = [field.with_type(array.type) for field, array in zip(self._schema, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _array(self, stored: pa.RecordBatch, field: pa.Field) -> pa.Array:
        pa = load_arrow("a file of columns")
        name = self._stored_name[field.name]
        if name is None:
            return pa.nulls(stored.num_rows, field.type)
        array = stored.column(name)
        if array.type == field.type:
            return array
        try:
            # Nanoseconds of other writers end at the column's precision; every other loss is an error.
            return array.cast(options=pa.compute.CastOptions(field.type, allow_time_truncate=True))
        except pa.ArrowNotImplementedError as error:
            raise ConfigurationError(
                f"column {field.name!r} of {shown(self._path)!r} is {array.type}, but the schema declares "
                f"{field.type}: {error}"
            ) from None
        except pa.ArrowInvalid:
            return array
