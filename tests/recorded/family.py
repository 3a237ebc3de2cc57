"""Families of recorded programs: one module per family, one function per program.

Each program was recorded as a module of its own, and its recording keeps the sha256 of that module's text. A family
holds many programs in one module without changing what was recorded: `standalone` writes the module of one program
again, byte for byte. The pieces of a program are

    @recorded(mode="BATCH")               the constants of the module that differ from `DEFAULTS`
    def window_tumbling(env):             the function `build`; the function's name is the program's name
        class Show(ProcessWindowFunction):    leading classes and UPPER_CASE constants: the module's
            ...
        return ...                        the body of `build`

The docstring of the function is the docstring of the module. Imports, classes, functions and constants at the top of
the family belong to every program that names them, directly or through another one; a function that stands below the
program in the family stands below `build` in the module.
"""

import ast
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
DEFAULTS = {"parallelism": 1, "mode": "STREAMING", "ordered": True}
_LINE_LIMIT = 120


def recorded(**constants: Any) -> Callable[[Any], Any]:
    """Mark a function as a program; keyword arguments are the constants of its module, in lower case."""
    return lambda build: build


@dataclass(frozen=True)
class _Piece:
    """A top-level statement, as text, with the names that it defines and uses."""

    text: str
    names: frozenset[str]
    uses: frozenset[str]
    line: int
    is_constant: bool = False


def names() -> list[str]:
    """Return the names of all programs, sorted."""
    return sorted(_family_of())


@cache
def standalone(name: str) -> str:
    """Return the text of the module that was recorded under this name."""
    family = _family_of()[name]
    return _Family.parsed(family).standalone(name)


@cache
def _family_of() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(PROGRAMS.glob("*.py")):
        for name in _Family.parsed(path).programs:
            assert name not in found, f"program {name} is defined in {found[name]} and in {path}"
            found[name] = path
    return found


class _Family:
    """One parsed family module."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._imports: list[ast.Import | ast.ImportFrom] = []
        self._shared: list[_Piece] = []
        self.programs: dict[str, ast.FunctionDef] = {}
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._imports.append(node)
            elif isinstance(node, ast.FunctionDef) and _is_program(node):
                assert node.name not in self.programs, f"program {node.name} is defined twice"
                self.programs[node.name] = node
            elif not isinstance(node, ast.Expr):  # the docstring of the family
                self._shared.append(self._piece(node))

    @staticmethod
    @cache
    def parsed(path: Path) -> "_Family":
        return _Family(path.read_text(encoding="utf-8"))

    def standalone(self, name: str) -> str:
        function = self.programs[name]
        docstring, *body = function.body
        own: list[_Piece] = []
        while body and _is_leading(body[0]):
            own.append(self._piece(body.pop(0)))
        build = f"def build({ast.unparse(function.args)}):\n{self._lines(body[0], body[-1])}"
        used = _uses(*body).union(*(piece.uses for piece in own))
        shared = self._used_of_shared(used, frozenset().union(*(piece.names for piece in own)))
        used = used.union(*(piece.uses for piece in shared))
        parts = [textwrap.dedent(self._lines(docstring, docstring))]
        imports = self._rendered_imports(used)
        if imports:
            parts.append(imports)
        parts.append(_rendered_constants(function))
        text = "\n\n".join(parts)
        before_was_constant = False
        for piece in [*(piece for piece in shared if piece.line < function.lineno), *own]:
            text += ("\n" if piece.is_constant and before_was_constant else "\n\n\n") + piece.text
            before_was_constant = piece.is_constant
        below = [piece.text for piece in shared if piece.line > function.lineno]
        return "\n\n\n".join([text, build, *below]) + "\n"

    def _used_of_shared(self, used: frozenset[str], own: frozenset[str]) -> list[_Piece]:
        wanted, before = used - own, frozenset[str]()
        while wanted != before:  # a shared piece may use another one
            before = wanted
            wanted = wanted.union(*(piece.uses for piece in self._shared if piece.names & wanted)) - own
        return [piece for piece in self._shared if piece.names & wanted]

    def _rendered_imports(self, used: frozenset[str]) -> str:
        groups: list[list[str]] = [[], []]  # the standard library, then PyFlink
        for node in self._imports:
            wanted = [alias for alias in node.names if (alias.asname or alias.name).partition(".")[0] in used]
            if not wanted or (isinstance(node, ast.ImportFrom) and node.module == "tests.recorded.family"):
                continue
            words = [ast.unparse(alias) for alias in wanted]
            if isinstance(node, ast.Import):
                groups[0].append(f"import {', '.join(words)}")
                continue
            line = f"from {node.module} import {', '.join(words)}"
            if len(line) > _LINE_LIMIT:
                line = f"from {node.module} import (\n" + "".join(f"    {word},\n" for word in words) + ")"
            groups[str(node.module).startswith("pyflink")].append(line)
        return "\n\n".join("\n".join(group) for group in groups if group)

    def _piece(self, node: ast.stmt) -> _Piece:
        text = textwrap.dedent(self._lines(node, node))
        if isinstance(node, ast.Assign):
            return _Piece(text, _targets(node), _uses(node), node.lineno, is_constant=True)
        assert isinstance(node, ast.ClassDef | ast.FunctionDef), ast.unparse(node)
        return _Piece(text, frozenset([node.name]), _uses(node), node.lineno)

    def _lines(self, first: ast.stmt, last: ast.stmt) -> str:
        start = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", ()))])
        return "\n".join(self._source.splitlines()[start - 1 : last.end_lineno])


def _is_program(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Call) and ast.unparse(each.func) == "recorded" for each in node.decorator_list)


def _is_leading(node: ast.stmt) -> bool:
    if isinstance(node, ast.ClassDef):
        return True
    return isinstance(node, ast.Assign) and all(name.isupper() for name in _targets(node))


def _targets(node: ast.Assign) -> frozenset[str]:
    return frozenset(each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name))


def _uses(*nodes: ast.stmt) -> frozenset[str]:
    return frozenset(node.id for each in nodes for node in ast.walk(each) if isinstance(node, ast.Name))


def _rendered_constants(function: ast.FunctionDef) -> str:
    (decorator,) = function.decorator_list
    assert isinstance(decorator, ast.Call)
    given = {str(each.arg): ast.literal_eval(each.value) for each in decorator.keywords}
    return "\n".join(f"{name.upper()} = {_literal(value)}" for name, value in (DEFAULTS | given).items())


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
