"""A class name means one class: `docs/glossary.md` lists the exceptions, which Flink's own API asks for."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.imports import module_name, source_files

GLOSSARY = Path(__file__).resolve().parent.parent / "docs" / "glossary.md"


def public_classes(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


def names_of_two_classes() -> set[str]:
    text = GLOSSARY.read_text(encoding="utf-8")
    section = text.partition("## Names that Flink uses twice\n")[2].partition("\n## ")[0]
    return {line.split("`")[1] for line in section.splitlines() if line.startswith("- `")}


def test_a_class_name_means_one_class():
    modules = defaultdict(list)
    for path in source_files():
        for name in public_classes(path):
            modules[name].append(module_name(path))
    twice = {name: found for name, found in modules.items() if len(found) > 1}
    assert twice.keys() == names_of_two_classes(), twice
