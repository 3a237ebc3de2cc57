"""What is public: the paths of docs/reference/public.md hold names only, and every name is described and stays."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.imports import SOURCE, module_name, source_files
from tests.manual import public_page

PUBLIC = public_page.public_modules()
IMPORT = re.compile(r"from (ekorn[\w.]*) import (\([^)]*\)|[^\n]*)")


def public_files() -> list[Path]:
    return [path for path in source_files() if module_name(path) in PUBLIC and path.name != "__main__.py"]


def test_every_public_path_is_a_file():
    assert sorted(map(module_name, public_files())) == sorted(PUBLIC)


def is_name_only(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return [ast.unparse(target) for target in statement.targets] == ["__all__"]
    return isinstance(statement, ast.Import | ast.ImportFrom)


def code_in(text: str) -> list[int]:
    """Return the lines of statements that are neither the docstring, an import nor `__all__`."""
    tree = ast.parse(text)
    statements = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    return [statement.lineno for statement in statements if not is_name_only(statement)]


def test_public_packages_hold_no_code():
    found = [f"{path.relative_to(SOURCE)}:{line}" for path in public_files() for line in code_in(path.read_text())]
    assert not found, "code in public packages, move it to a room:\n" + "\n".join(found)


def test_every_public_module_has_a_docstring_and_lists_its_names():
    found = []
    for path in public_files():
        tree = ast.parse(path.read_text())
        lists_names = any(isinstance(statement, ast.Assign) for statement in tree.body)
        if ast.get_docstring(tree) is None or (len(tree.body) > 1 and not lists_names):
            found.append(str(path.relative_to(SOURCE)))
    assert not found, "public modules without a docstring or without __all__: " + ", ".join(found)


@pytest.mark.parametrize(
    "text", ["def f(): ...", "class C: ...", "X = 1", "if True:\n    import os", "print('x')", "__all__ += ['x']"]
)
def test_code_is_recognised(text):
    assert code_in('"""Docstring."""\n' + text) == [2]


def test_names_are_recognised():
    assert code_in('"""Docstring."""\nfrom __future__ import annotations\nfrom a import b\n__all__ = ["b"]\n') == []


# ------------------------------------------------------------------------------------------------------------ the page


def test_the_page_of_what_is_public_is_written_from_the_modules():
    assert public_page.PAGE.read_text(encoding="utf-8") == public_page.page(), "run python -m tests.manual.public_page"


def test_no_public_name_goes_away_unnoticed():
    listed = names_by_module(public_page.NAMES.read_text(encoding="utf-8"))
    present = {path: set(public_page.names_of(importlib.import_module(path))) for path in PUBLIC}
    gone = [f"{path}.{name}" for path, names in listed.items() for name in sorted(names - present.get(path, set()))]
    assert not gone, f"programs import {', '.join(gone)}: keep the names, or say in CHANGELOG.md how to follow"
    assert present == listed, "names were added: run python -m tests.manual.public_page"


def names_by_module(text: str) -> dict[str, set[str]]:
    """Read a line for each module, and below it an indented line for each of its names."""
    parts = re.findall(r"^(\S+)\n((?: .*\n)*)", text, re.MULTILINE)
    return {path: set(names.split()) for path, names in parts}


def test_the_list_of_names_is_read_as_it_is_written():
    assert names_by_module("ekorn.a\n    x\n    y\nekorn.b\n") == {"ekorn.a": {"x", "y"}, "ekorn.b": set()}


def imported_by_the_manual() -> Iterator[tuple[str, str, str]]:
    """Yield the file, the module and the name of every import of ekorn in pages and examples."""
    root = SOURCE.parents[1]
    files = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.py")]
    for file in [*files, *(root / "docs").rglob("*.ipynb")]:
        for module, names in IMPORT.findall(file.read_text(encoding="utf-8")):
            plain = re.sub(r"#[^\n]*|\.\.\.|\\n.*", " ", names)
            for name in re.findall(r"(\w+)(?: as \w+)?(?:,|\W*$)", plain):
                yield str(file.relative_to(root)), module, name


def test_the_manual_and_the_examples_import_public_names_only():
    found = list(imported_by_the_manual())
    assert len(found) > 400
    assert not [each for each in found if each[1] not in PUBLIC]
    assert not [each for each in found if not is_public(each[1], each[2])]


def is_public(module: str, name: str) -> bool:
    return name in public_page.names_of(importlib.import_module(module)) or f"{module}.{name}" in PUBLIC


def test_the_reference_shows_public_paths_only():
    pages = (SOURCE.parents[1] / "docs" / "reference").rglob("*.md")
    shown = [path for page in pages for path in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)]
    assert len(shown) > 50
    assert not [path for path in shown if path not in PUBLIC and not is_public(*path.rsplit(".", 1))]


# ----------------------------------------------------------------------------------------------- docstrings and types


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that ekorn defines for a class."""
    for base in kind.__mro__:
        if base.__module__.startswith("ekorn"):
            yield from ((n, member) for n, member in vars(base).items() if not n.startswith("_"))


def functions_of(member: Any) -> list[Any]:
    if isinstance(member, property):
        return [member.fget] if member.fget is not None else []
    member = getattr(member, "__func__", member)
    return [member] if inspect.isfunction(member) else []


def undescribed(name: str, found: Any) -> list[str]:
    """Return what lacks a docstring or a type: the function or class itself, or methods of the class."""
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        return []  # a constant or an alias of a type, described where it is defined
    wrong = [] if inspect.getdoc(found) else [f"{name} has no docstring"]
    described = [(name, found)] if inspect.isfunction(found) else list(members(found))
    for member_name, member in described:
        for function in functions_of(member):
            if not (inspect.getdoc(function) or inspect.getdoc(getattr(found, member_name, None))):
                wrong.append(f"{name}.{member_name} has no docstring")
            wrong += [f"{name}.{member_name}: {what} has no type" for what in untyped(function)]
    return wrong


def untyped(function: Any) -> list[str]:
    signature = inspect.signature(function)
    without = [
        p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name not in ("self", "cls")
    ]
    return without + (["the result"] if signature.return_annotation is signature.empty else [])


def test_every_public_name_has_a_docstring_and_types():
    names = [(path, name) for path in PUBLIC for name in public_page.names_of(importlib.import_module(path))]
    wrong = sorted(
        {each for path, name in names for each in undescribed(name, getattr(importlib.import_module(path), name))}
    )
    assert not wrong, "\n".join(wrong)


def test_what_lacks_a_docstring_or_a_type_is_found():
    def untold(number):
        return number

    class Untold:
        def told(self) -> None:
            """Do nothing."""

        def untold(self, number) -> int:
            return number

    Untold.__module__ = "ekorn.untold"
    assert undescribed("untold", untold) == [
        "untold has no docstring",
        "untold.untold has no docstring",
        "untold.untold: number has no type",
        "untold.untold: the result has no type",
    ]
    assert undescribed("Untold", Untold) == [
        "Untold has no docstring",
        "Untold.untold has no docstring",
        "Untold.untold: number has no type",
    ]
