"""Reads Java's properties format: keys and values in a text file."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = " \t\f"
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    r"""Return the properties in a text. Of equal keys the last one counts.

    ``#`` and ``!`` begin comments. A key ends at the first blank, ``=`` or ``:``. A backslash at the end of a line
    continues it on the next line, whose leading blanks are dropped. ``\t``, ``\n``, ``\u00e9``, ``\:`` and the like
    stand for characters.

    Example:
        >>> read_properties("name = Ada\n! a comment\nlist: one, \\\n      two\na\\ key=")
        {'name': 'Ada', 'list': 'one, two', 'a key': ''}
    """
    return dict(_split(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and empty lines. A line and its continuations are one."""
    begun: str | None = None
    for line in re.split(r"\r\n|\n|\r", text):
        content = line.lstrip(_BLANK)
        if begun is None and (not content or content[0] in "#!"):
            continue
        backslashes = len(content) - len(content.rstrip("\\"))
        if backslashes % 2:
            begun = (begun or "") + content[:-1]
        else:
            yield (begun or "") + content
            begun = None
    if begun:
        yield begun


def _split(line: str) -> tuple[str, str]:
    match = re.match(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
    assert match is not None, "every part of the pattern may be empty"
    return _unescaped(match[1]), _unescaped(match[2])


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        found = match[1]
        return chr(int(found[1:], 16)) if len(found) == 5 else _CONTROL.get(found, found)

    return _ESCAPED.sub(character, text)
