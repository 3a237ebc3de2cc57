"""The form of CSV text: separators, quotes, escapes, null literals; splits a record into texts and joins texts to one.

Reading follows RFC 4180 with Flink's additions (comments, an escape character). Writing quotes exactly the values that
Flink's writer (Jackson) quotes, so that files are equal byte for byte.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["CsvDialect", "CsvText"]

_CHECKED_CHARS = 24  # Flink: Jackson quotes longer texts without looking at them


class CsvText(NamedTuple):
    """A value as text. Numbers and truth values are never quoted."""

    text: str
    may_be_quoted: bool = True


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The characters of CSV text. `quote` and `escape` may be None, and `null_literal` None if no text means None."""

    separator: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null_literal: str | None = None
    comments: bool = False
    line_end: str = "\n"

    def records(self, lines: Iterable[str]) -> Any:
        """Return the reader of the standard library over lines with their ends; it also counts lines."""
        csv.field_size_limit(sys.maxsize)  # a field may be as long as a record, which has its own limit
        return csv.reader(
            lines,
            delimiter=self.separator,
            quotechar=self.quote,
            escapechar=self.escape,
            quoting=csv.QUOTE_NONE if self.quote is None else csv.QUOTE_MINIMAL,
            strict=True,
        )

    def split(self, text: str) -> list[str] | None:
        """Return the texts of one record, or None for a comment.

        Raises:
            ValueError: The text is not one record.
        """
        if self.is_comment(text):
            return None
        try:
            rows = list(self.records(text.splitlines(keepends=True) or [""]))
        except csv.Error as error:
            raise ValueError(str(error)) from None
        if len(rows) > 1:
            raise ValueError(f"there are {len(rows)} records in one message")
        return (rows[0] if rows else []) or [""]

    def is_comment(self, line: str) -> bool:
        """Return whether a line is a comment."""
        return self.comments and line.startswith("#")

    def join(self, values: Iterable[CsvText | None]) -> str:
        """Return one record, with the line end; None is written as the null literal."""
        return self.separator.join(self._parts(values)) + self.line_end

    def _parts(self, values: Iterable[CsvText | None]) -> Iterator[str]:
        for value in values:
            if value is None:
                yield self.null_literal or ""
            elif value.may_be_quoted and self._needs_quotes(value.text):
                yield self._quoted(value.text)
            else:
                yield value.text

    def _needs_quotes(self, text: str) -> bool:
        if self.quote is None:
            return False
        if len(text) > _CHECKED_CHARS:
            return True
        return _special(self._highest(), self.escape or "").search(text) is not None

    def _highest(self) -> str:
        highest: str = max(self.separator, self.quote or "", *self.line_end)
        return highest

    @property
    def unchecked_chars(self) -> int:
        """The length above which every text is quoted."""
        return _CHECKED_CHARS

    def quoted_pattern(self) -> str:
        """Return the pattern of the characters for which a text is quoted, for Arrow."""
        escape = f"\\x{{{ord(self.escape):x}}}" if self.escape else ""
        return f"[\\x{{0}}-\\x{{{ord(self._highest()):x}}}{escape}]"

    def _quoted(self, text: str) -> str:
        assert self.quote is not None
        if self.escape is not None:
            text = text.replace(self.escape, self.escape * 2)
        return f"{self.quote}{text.replace(self.quote, self.quote * 2)}{self.quote}"


@lru_cache(maxsize=64)
def _special(highest: str, escape: str) -> re.Pattern[str]:
    """Return the pattern of characters for which a text is quoted.

    Jackson compares code points: every character up to the highest special one is taken for special.
    """
    return re.compile(f"[\0-{re.escape(highest)}{re.escape(escape)}]")
