"""A line of a CSV file as a record: splits it into texts, and converts those of the chosen columns."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["CsvColumn", "CsvLines"]


@dataclass(frozen=True)
class CsvColumn:
    """A column to read: its number in the file, and what converts its text."""

    index: int
    convert: Callable[[str], Any]


@dataclass(frozen=True)
class CsvLines:
    """Makes records of lines.

    A line may have more columns than are read, as in Flink. A value in quotes may hold the separator, and two quotes
    for one; it may not hold a line end.

    Attributes:
        columns: The columns to read, in the order of the record's fields.
        make: Makes the record of the values.
        separator: What stands between columns.
        quote: What may stand around values; None for no quotes.
    """

    columns: Sequence[CsvColumn]
    make: Callable[[list[Any]], Any]
    separator: str = ","
    quote: str | None = None

    def __call__(self, line: str) -> Any:  # hot
        """Return the record of a line.

        Raises:
            ValueError: The line has too few columns, or a text is not a value of its column's type.
        """
        texts = line.split(self.separator) if self.quote is None or self.quote not in line else self._unquoted(line)
        try:
            return self.make([column.convert(texts[column.index]) for column in self.columns])
        except IndexError:
            needed = max(column.index for column in self.columns) + 1
            raise ValueError(f"expected {needed} columns, found {len(texts)}") from None
        except ValueError:
            for column in self.columns:  # find the column at fault
                try:
                    column.convert(texts[column.index])
                except ValueError as error:
                    raise ValueError(f"column {column.index}: {error}") from None
            raise

    def _unquoted(self, line: str) -> list[str]:
        if len(self.separator) == 1:
            csv.field_size_limit(sys.maxsize)
            try:
                (texts,) = csv.reader([line], delimiter=self.separator, quotechar=self.quote, strict=True)
            except csv.Error as error:
                raise ValueError(str(error)) from None
            return texts
        return self._split_long_separator(line)

    def _split_long_separator(self, line: str) -> list[str]:
        """Return the texts of a line whose separator has several characters, which the standard library cannot read."""
        quote, separator = self.quote, self.separator
        assert quote is not None
        texts, at = [], 0
        while True:
            if not line.startswith(quote, at):
                end = line.find(separator, at)
                texts.append(line[at:] if end < 0 else line[at:end])
            else:
                end = at + 1
                while True:
                    end = line.find(quote, end)
                    if end < 0:
                        raise ValueError("a quote is not closed")
                    if not line.startswith(quote, end + 1):
                        break
                    end += 2
                texts.append(line[at + 1 : end].replace(quote * 2, quote))
                end += 1
                if end < len(line) and not line.startswith(separator, end):
                    raise ValueError(f"{separator!r} expected after a value in quotes")
                end = end if end < len(line) else -1
            if end < 0:
                return texts
            at = end + len(separator)
