"""Builds and compiles Python source: the loops of a chain.

A chain of operators becomes one function with one loop. There are no calls from operator to operator and no lists
between them, and a record passes the whole chain before the next one starts, as in Flink. Each generated line is
recorded with the operator it belongs to, so an exception is attributed to its operator at no cost per record.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

_unique = itertools.count()


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """The origin of a generated line: the operator, and the local variable that holds its record."""

    operator: int
    record: str
    key: str | None = None  # the variable with the record's key, if the line looks the key up
    activity: str | None = None  # what the line does for the operator, if it does not run the operator itself
    result_of: str | None = None  # the variable with the operator's input, if `record` is a result that leaves it


class LinePosition(NamedTuple):
    """A position in a function under construction: the number of its line, and its indentation in levels."""

    line: int
    indent: int


class CodeBuilder:
    """Source text under construction, with the objects it refers to."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._origins: list[CodeOrigin | None] = []
        self._indent = 0
        self._origin: CodeOrigin | None = None
        self._names: dict[int, str] = {}
        self._count = itertools.count()
        self._finished: list[tuple[list[str], list[CodeOrigin | None]]] = []
        self.namespace: dict[str, Any] = {}

    @property
    def depth(self) -> int:
        """Return the indentation of the next line, in levels."""
        return self._indent

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)
        self._origins.append(self._origin)

    def position(self) -> LinePosition:
        """Return the position of the next line of this function, for `insert`."""
        return LinePosition(len(self._lines), self._indent)

    def insert(self, position: LinePosition, text: str) -> None:
        """Insert a line at a position, before the lines that were added since."""
        self._lines.insert(position.line, "    " * position.indent + text)
        self._origins.insert(position.line, None)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Add a header line, and indent the lines added inside."""
        self.line(header)
        self._indent += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._indent -= 1

    @contextmanager
    def function(self, header: str) -> Iterator[None]:
        """Add a function at module level, also while another function is being built."""
        outer = self._lines, self._origins, self._indent, self._origin
        self._lines, self._origins, self._indent, self._origin = [], [], 0, None
        with self.block(header):
            yield
        lines, origins = self._lines, self._origins
        self._lines, self._origins, self._indent, self._origin = outer
        self._finished.append((lines, origins))

    @contextmanager
    def at(self, operator: int, record: str) -> Iterator[None]:
        """Attribute the lines added inside to an operator and to the record in a variable."""
        before = self._origin
        inside = before is not None and before.operator == operator
        self._origin = CodeOrigin(operator, record, result_of=before.record if before is not None and inside else None)
        yield
        self._origin = before

    @contextmanager
    def of_record(self, record: str) -> Iterator[None]:
        """Attribute the lines added inside to another record of the same operator: a part of what it was given."""
        before = self._origin
        self._origin = None if before is None else replace(before, record=record)
        yield
        self._origin = before

    @contextmanager
    def looking_up(self, key: str) -> Iterator[None]:
        """Mark the lines added inside as look-ups of the key in a variable."""
        before = self._origin
        self._origin = None if before is None else replace(before, key=key)
        yield
        self._origin = before

    @contextmanager
    def doing(self, activity: str) -> Iterator[None]:
        """Mark the lines added inside as work for the operator that is not the operator's own."""
        before = self._origin
        self._origin = None if before is None else replace(before, activity=activity)
        yield
        self._origin = before

    def bind(self, value: Any, hint: str) -> str:
        """Return a global name for an object; always the same name for the same object."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"{hint}_{next(self._count)}"
            self.namespace[name] = value  # keeps the object alive, so its id stays its own
        return name

    def fresh(self, hint: str) -> str:
        """Return a new local variable name."""
        return f"{hint}{next(self._count)}"

    def compile(self, title: str) -> CompiledCode:
        """Compile the functions."""
        lines: list[str] = []
        origins: list[CodeOrigin | None] = []
        for more_lines, more_origins in self._finished:
            lines += more_lines
            origins += more_origins
        source = "\n".join(lines) + "\n"
        filename = f"<chain {next(_unique)}: {title}>"
        exec(compile(source, filename, "exec"), self.namespace)
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        return CompiledCode(filename, source, tuple(origins), self.namespace)


@dataclass(frozen=True)
class CompiledCode:
    """Compiled functions, and the origin of each of their lines."""

    filename: str
    source: str
    origins: tuple[CodeOrigin | None, ...]
    namespace: dict[str, Any]

    def function(self, name: str) -> Callable[..., None]:
        """Return a function by its name."""
        found: Callable[..., None] = self.namespace[name]
        return found

    def origin(self, line_number: int) -> CodeOrigin | None:
        """Return the origin of a line; lines count from 1."""
        return self.origins[line_number - 1] if 0 < line_number <= len(self.origins) else None

    def release(self) -> None:
        """Drop the source that was kept for tracebacks."""
        linecache.cache.pop(self.filename, None)
