"""Statements with `?` placeholders: where they stand, outside of text, names and comments."""

from __future__ import annotations

import re
from typing import NamedTuple

# Text, quoted names, comments and dollar-quoted text are passed over; `??` is the operator `?` of PostgreSQL.
_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | --[^\n]*
    | /\*.*?\*/
    | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$).*?(?P=dollar)
    | (?P<operator>\?\?)
    | (?P<placeholder>\?)
    """,
    re.VERBOSE | re.DOTALL,
)


class Statement(NamedTuple):
    """A statement as the text between its placeholders."""

    parts: tuple[str, ...]

    @property
    def placeholder_count(self) -> int:
        """Return the number of values that the statement takes."""
        return len(self.parts) - 1

    def with_placeholder(self, placeholder: str) -> str:
        """Return the statement with another spelling of its placeholders.

        >>> parse("INSERT INTO t VALUES (?, 'why?')").with_placeholder(":v")
        "INSERT INTO t VALUES (:v, 'why?')"
        """
        return placeholder.join(self.parts)


def parse(sql: str) -> Statement:
    """Find the placeholders of a statement.

    >>> parse("SELECT a ?? 'key' FROM t WHERE b = ?").parts
    ("SELECT a ? 'key' FROM t WHERE b = ", '')
    """
    parts, text, end = [], "", 0
    for token in _TOKEN.finditer(sql):
        text += sql[end : token.start()]
        end = token.end()
        if token.lastgroup == "placeholder":
            parts.append(text)
            text = ""
        elif token.lastgroup == "operator":
            text += "?"
        else:
            text += token.group()
    return Statement((*parts, text + sql[end:]))
