"""The public packages on PyFlink's paths hold names only: a docstring, imports and `__all__`."""

import ast
from pathlib import Path

import pytest

from tests.imports import SOURCE, source_files

PUBLIC = ("common", "datastream", "dataset", "pyflink", "table")


def public_files() -> list[Path]:
    return [
        path
        for path in source_files()
        if path.relative_to(SOURCE).parts[0] in PUBLIC and path != SOURCE / "pyflink" / "__main__.py"
    ]


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
