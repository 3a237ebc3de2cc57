"""Formats of files of text: a line for each record, or a line of columns for each tuple."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from ekorn.errors import RecordTypeError, preview
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.record_text import record_file_text
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

__all__ = ["CsvLinesFormat", "TextLinesFormat"]


@dataclass(frozen=True)
class TextLinesFormat:
    """Writes a line for each record: what `formatter` returns, or the text of the record."""

    type_info: TypeInformation | None = None
    formatter: Callable[[Any], str] | None = None
    charset: str = "UTF-8"

    def create(self, stream: IO[bytes]) -> _LineWriter:
        return _LineWriter(stream, self._line, self.charset)

    def _line(self, record: Any) -> str:
        if self.formatter is None:
            return record_file_text(self.type_info, record) + "\n"
        text = self.formatter(record)
        if not isinstance(text, str):
            raise TypeError(f"the text formatter must return a str, and returned {preview(text)}")
        return text + "\n"


@dataclass(frozen=True)
class CsvLinesFormat:
    """Writes a line for each tuple: its fields as text, without quotes unless asked for. None is an empty text."""

    line_delimiter: str = "\n"
    field_delimiter: str = ","
    quotes_strings: bool = False
    type_info: TypeInformation | None = None
    charset: str = "UTF-8"

    def create(self, stream: IO[bytes]) -> _LineWriter:
        known = self.type_info
        types = known.get_field_types() if isinstance(known, TupleTypeInfo) else None

        def line(record: Any) -> str:
            if not isinstance(record, (tuple, list, Row)):
                raise RecordTypeError("a tuple", preview(record), "write_as_csv() writes tuples and rows")
            fields = list(record)
            if types is None:
                texts = [self._text(None, field) for field in fields]
            else:
                texts = [self._text(type_info, field) for type_info, field in zip(types, fields, strict=True)]
            return self.field_delimiter.join(texts) + self.line_delimiter

        return _LineWriter(stream, line, self.charset)

    def _text(self, type_info: TypeInformation | None, field: Any) -> str:
        if field is None:
            return ""
        if self.quotes_strings and isinstance(field, str):
            return '"' + field.replace('"', '""') + '"'
        return record_file_text(type_info, field)


class _LineWriter:
    def __init__(self, stream: IO[bytes], line: Callable[[Any], str], charset: str) -> None:
        self._write = stream.write
        self._line = line
        self._encode = codecs.getincrementalencoder(charset)().encode  # writes a byte-order mark once

    def add_element(self, element: Any) -> None:
        self._write(self._encode(self._line(element)))

    def flush(self) -> None:
        pass  # every record is written at once

    def finish(self) -> None:
        pass
