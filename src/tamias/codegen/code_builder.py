"""Python source that is written, compiled and run: the loops of a chain.

A chain of operators becomes one function with one loop: no call from operator to operator, no list between
them, and every record goes through the whole chain before the next one starts, as in Flink. The line numbers
say which operator a line belongs to, so an exception is blamed on the right one at no cost per record.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

_unique = itertools.count()


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """What a generated line does: it runs an operator on the record that a local variable holds."""

    operator: int
    record: str
    key: str | None = None  # the variable with its key, where a line looks the key up


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
        """How deep the next line is indented."""
        return self._indent

    def line(self, text: str) -> None:
        """Add a line."""
        self._lines.append("    " * self._indent + text)
        self._origins.append(self._origin)

    def position(self) -> tuple[int, int]:
        """Where the next line of this function goes; `insert` can put a line there later."""
        return len(self._lines), self._indent

    def insert(self, position: tuple[int, int], text: str) -> None:
        """Put a line where `position` was taken, before what was written since."""
        at, indent = position
        self._lines.insert(at, "    " * indent + text)
        self._origins.insert(at, None)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Add a header line and indent what follows."""
        self.line(header)
        self._indent += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._indent -= 1

    @contextmanager
    def function(self, header: str) -> Iterator[None]:
        """Add a function at the outermost level, whatever is being written now."""
        outer = self._lines, self._origins, self._indent, self._origin
        self._lines, self._origins, self._indent, self._origin = [], [], 0, None
        with self.block(header):
            yield
        lines, origins = self._lines, self._origins
        self._lines, self._origins, self._indent, self._origin = outer
        self._finished.append((lines, origins))

    @contextmanager
    def at(self, operator: int, record: str) -> Iterator[None]:
        """Lines added here belong to an operator, and work on the record in this variable."""
        before, self._origin = self._origin, CodeOrigin(operator, record)
        yield
        self._origin = before

    @contextmanager
    def looking_up(self, key: str) -> Iterator[None]:
        """Lines added here look up the key in this variable."""
        before = self._origin
        self._origin = None if before is None else replace(before, key=key)
        yield
        self._origin = before

    def bind(self, value: Any, hint: str) -> str:
        """A global name for an object; the same object gets the same name."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"{hint}_{next(self._count)}"
            self.namespace[name] = value  # keeps the object alive, so its id stays its own
        return name

    def fresh(self, hint: str) -> str:
        """A new local variable name."""
        return f"{hint}{next(self._count)}"

    def compile(self, title: str) -> CompiledCode:
        """Turn the functions into callables."""
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
    """Compiled functions, and which operator each of their lines belongs to."""

    filename: str
    source: str
    origins: tuple[CodeOrigin | None, ...]
    namespace: dict[str, Any]

    def function(self, name: str) -> Callable[..., None]:
        """One of the functions."""
        found: Callable[..., None] = self.namespace[name]
        return found

    def origin(self, line_number: int) -> CodeOrigin | None:
        """The operator that a line (from 1) belongs to."""
        return self.origins[line_number - 1] if 0 < line_number <= len(self.origins) else None

    def release(self) -> None:
        """Forget the source kept for tracebacks."""
        linecache.cache.pop(self.filename, None)
