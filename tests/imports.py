"""The import statements of `src/ekorn`, read from the source text: no module is imported to find them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ekorn"


@dataclass(frozen=True)
class Import:
    """One imported module and the line of the statement. The statement may stand inside a function."""

    line: int
    module: str
    only_for_types: bool  # inside `if TYPE_CHECKING:`


def source_files() -> list[Path]:
    """Return every Python file of the package."""
    return sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name of the module that a file holds."""
    parts = ("ekorn", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports_of(path: Path) -> list[Import]:
    """Return every module that a file imports."""
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        Import(node.lineno, module, only_for_types)
        for node, only_for_types in _statements(tree)
        for module in _imported(node, package)
    ]


def _statements(node: ast.AST, *, only_for_types: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, only_for_types
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            for inner in child.body:
                yield from _statements(ast.Module([inner], []), only_for_types=True)
            for inner in child.orelse:
                yield from _statements(ast.Module([inner], []), only_for_types=only_for_types)
        else:
            yield from _statements(child, only_for_types=only_for_types)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _imported(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        above = package.split(".")
        base = ".".join([*above[: len(above) - node.level + 1], *filter(None, [node.module])])
    # `from package import name` imports the module package.name if there is one, else a name of the package.
    return sorted({f"{base}.{alias.name}" if _is_module(f"{base}.{alias.name}") else base for alias in node.names})


def _is_module(name: str) -> bool:
    top, *below = name.split(".")
    path = SOURCE.joinpath(*below)
    return top == "ekorn" and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return every strongly connected component of more than one node, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in index:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], index[target])
        if lowest[node] == index[node]:
            component = [stack.pop()]
            while component[-1] != node:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found
