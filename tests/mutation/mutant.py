"""One mutant, and the list of those that behave as the original does. `mutants.py` makes mutants."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
ANY = "any change"  # in the place of `after`: whatever becomes of the line
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Mutant(NamedTuple):
    """One change to one module. `function`, `before` and `after` identify it, whatever lines are added above it."""

    path: str
    line: int
    function: str
    operator: str
    before: str
    after: str
    code: str

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return self.path, self.function, self.before, self.after


def equivalents() -> list[tuple[tuple[str, str, str, str], str]]:
    """Read the mutants that behave as the original does, each with its reason."""
    entries = tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])
    return [((e["file"], e["function"], e["before"], e.get("after", ANY)), e["reason"]) for e in entries]


def function_at(code: str, line: int) -> str:
    """Return the qualified name of the innermost function or class around a line; "" at a module's level."""
    around = [node for node in _definitions(code) if _holds(node, line)]
    return ".".join(node.name for node in sorted(around, key=lambda node: node.lineno))


@cache
def _definitions(code: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, DEFINITIONS)]


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
