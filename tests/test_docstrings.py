"""Every example in a docstring of ekorn runs and gives the result that it shows."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
EXAMPLES_AT_LEAST = 176  # lines of `>>>`; an example that is lost shows here
PARSER = doctest.DocTestParser()


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def docstrings(path):
    """Yield name, line and text of every docstring of a file with examples, of private and nested objects too."""

    def below(node, name):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            yield name, node.body[0].lineno, node.body[0].value.value
        for child in ast.iter_child_nodes(node):
            inner = f"{name}.{child.name}" if hasattr(child, "name") and isinstance(child.name, str) else name
            yield from below(child, inner)

    text = path.read_text(encoding="utf-8")
    if ">>>" in text:  # most files have no examples, and every worker of the tests reads all of them
        yield from below(ast.parse(text), module_name(path))


# The examples are read from the files and not from the imported objects: doctest skips an object whose `__module__` is
# not the module it looks at, and classes that users pickle carry their public path there (`types/published.py`).
DOCTESTS = {
    name: (path, line, text)
    for path in sorted(SOURCE.rglob("*.py"))
    for name, line, text in docstrings(path)
    if PARSER.get_examples(text)
}


@pytest.mark.parametrize("name", DOCTESTS)
def test_the_examples_of_a_docstring_hold(name):
    path, line, text = DOCTESTS[name]
    names = dict(vars(importlib.import_module(module_name(path))))
    examples = PARSER.get_doctest(text, names, name, str(path), line - 1)
    report = []
    doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert not report, "".join(report)


def test_no_example_is_lost():
    assert sum(len(PARSER.get_examples(text)) for _, _, text in DOCTESTS.values()) >= EXAMPLES_AT_LEAST


def test_the_modules_in_the_table_of_a_package_exist():
    missing = []
    for path in sorted(SOURCE.rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if re.search(r"^\| (modules?|folders?) \|", text, re.MULTILINE):
            named = [name for line in re.findall(r"^\| (`[^|]*)\|", text, re.MULTILINE) for name in line.split(",")]
            for name in (each.strip(" `/") for each in named):
                if not (path.parent / name).is_dir() and not (path.parent / f"{name}.py").is_file():
                    missing.append(f"{path.relative_to(SOURCE)}: {name}")
    assert not missing, "\n".join(missing)
