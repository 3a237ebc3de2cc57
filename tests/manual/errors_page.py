"""Writes docs/reference/errors.md from `src/ekorn/errors`: `python -m tests.manual.errors_page`."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import ModuleType

from ekorn import errors
from ekorn.errors import EkornError
from tests.manual.blocks import DOCS

PAGE = DOCS / "reference" / "errors.md"
HEAD = """# Errors

<!-- Written from the classes by: python -m tests.manual.errors_page -->

Every exception that Ekorn raises, from `ekorn.errors`. Below a name is the form of its message, with names in braces
where a message has values. A job that fails with an error marked **not retried** is not restarted,
whatever its restart strategy. [Troubleshooting](../guides/troubleshooting.md) lists messages with their usual causes.
"""
SUBJECTS = ["program", "records", "job", "state", "checkpoints", "data_frames", "databases", "kafka"]
SUBJECTS += ["rabbitmq", "services", "queryable", "batch"]
TITLES = {"rabbitmq": "RabbitMQ", "queryable": "Queryable state"}


def page() -> str:
    """Return the text of docs/reference/errors.md."""
    return HEAD + "".join(_section(getattr(errors, subject)) for subject in SUBJECTS)


def _section(module: ModuleType) -> str:
    assert module.__doc__ is not None
    subject = module.__name__.rpartition(".")[2]
    title = TITLES.get(subject) or subject.replace("_", " ").capitalize()
    return f"\n## {title}\n\n{module.__doc__.strip()}\n" + "".join(_entry(each) for each in classes_of(module))


def classes_of(module: ModuleType) -> list[type[Exception]]:
    """Return the exceptions that a module of `ekorn.errors` defines, in their order."""
    tree = ast.parse(inspect.getsource(module))
    named = [getattr(module, node.name) for node in tree.body if isinstance(node, ast.ClassDef)]
    return [each for each in named if isinstance(each, type) and issubclass(each, Exception)]


def _entry(error: type[Exception]) -> str:
    above = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
    article = "An" if error.__bases__[0].__name__[0] in "AEIO" else "A"
    retried = "" if getattr(error, "retryable", True) or not issubclass(error, EkornError) else " **Not retried.**"
    lines = inspect.cleandoc(error.__doc__ or "")
    shape = _message(error)
    shown = f"\n```text\n{textwrap.fill(shape, 110)}\n```\n" if shape else ""
    return f"\n### {error.__name__}\n\n{article} {above}.{retried} {lines}\n{shown}"


def _message(error: type[Exception]) -> str:
    """Return the form of the message that a class composes; empty if it has the words of its raiser."""
    method = vars(error).get("__str__")
    if method is None:
        return ""
    tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    return max((_shape(value) for value in returned if value is not None), key=len, default="")


def _shape(value: ast.expr) -> str:
    match value:
        case ast.Constant():
            return str(value.value)
        case ast.JoinedStr():
            return "".join(_shape(part) for part in value.values)
        case ast.FormattedValue():
            return "{" + _name(value.value) + "}"
        case ast.BinOp():
            return _shape(value.left) + _shape(value.right)
    return "{" + _name(value) + "}"


def _name(value: ast.expr) -> str:
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self":
        return value.attr  # a field of the error
    names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
    return names[0] if len(names) == 1 else "..."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
