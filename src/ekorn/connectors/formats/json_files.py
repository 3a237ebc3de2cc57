"""Files of JSON lines: `JsonBulkWriters` writes rows, one object in a line."""

from __future__ import annotations

from typing import IO, Any

from ekorn.connectors.formats.json_rows import timestamp_standard
from ekorn.connectors.formats.json_values import JsonWriter
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.connectors.formats.text_values import TimestampFormat
from ekorn.connectors.formats.written_columns import same_columns
from ekorn.errors import RecordFormatError, preview
from ekorn.types.data_type_info import checked_row_type
from ekorn.types.data_types import RowType

__all__ = ["JsonBulkWriters"]


class JsonBulkWriters:
    """Writes rows to files of JSON lines.

    FileSink.for_bulk_format("/data/out", JsonBulkWriters.for_row_type(row_type)).build()
    """

    @staticmethod
    def for_row_type(row_type: RowType, timestamp_format: str = "ISO-8601") -> BulkWriterFactory:
        """Write an object for each row, as `JsonRowSerializationSchema` does.

        Args:
            row_type: The fields and their types.
            timestamp_format: The standard for the text of timestamps: "ISO-8601" or "SQL".
        """
        fields = checked_row_type(row_type, "for_row_type()")
        return _JsonWriterFactory(fields, timestamp_standard(timestamp_format))


class _JsonWriterFactory(BulkWriterFactory):
    bytes_can_be_joined = True

    def __init__(self, row_type: RowType, timestamps: TimestampFormat, found: RowType | None = None) -> None:
        JsonWriter(timestamps).of(row_type)  # refuses what JSON cannot represent
        self._row_type = row_type
        self._timestamps = timestamps
        self._found = found  # the columns of the batches that the writers are given

    def for_columns(self, row_type: RowType) -> _JsonWriterFactory | None:
        names = row_type.field_names()
        if any(
            f.name not in names or not same_columns(row_type[f.name].data_type, f.data_type) for f in self._row_type
        ):
            return None
        return _JsonWriterFactory(self._row_type, self._timestamps, row_type)

    def create(self, stream: IO[bytes]) -> _JsonLines:
        return _JsonLines(self._row_type, self._timestamps, stream, self._found)

    def __repr__(self) -> str:
        return f"JsonBulkWriters.for_row_type({self._row_type!r})"


class _JsonLines:
    def __init__(
        self, row_type: RowType, timestamps: TimestampFormat, stream: IO[bytes], found: RowType | None
    ) -> None:
        self._write = JsonWriter(timestamps).of(row_type)
        self._stream = stream
        if found is not None:
            from ekorn.columns.row_columns import RowColumns
            from ekorn.connectors.formats.json_texts import row_texts

            chosen = RowType([found[name] for name in row_type.field_names()])
            self._texts, self._rows = row_texts(chosen, chosen.field_names(), timestamps), RowColumns(found).rows

    def add_element(self, element: Any) -> None:
        self._stream.write(self._line(element))

    def _line(self, element: Any) -> bytes:
        try:
            return f"{self._write(element)}\n".encode()
        except (AttributeError, TypeError, ValueError) as error:
            raise RecordFormatError("JSON", str(error), preview(element)) from None

    def add_columns(self, data: Any) -> None:
        import pyarrow.compute as pc

        from ekorn.connectors.formats.arrow_texts import joined_texts

        try:
            content: Any = joined_texts(pc.binary_join_element_wise(self._texts(data), "\n", ""))
        except (ValueError, TypeError):  # the rows are written one by one, or one of them is at fault
            content = b"".join([self._line(row) for row in self._rows(data)])
        self._stream.write(content)

    def flush(self) -> None:
        pass  # every record is written at once

    def finish(self) -> None:
        pass
