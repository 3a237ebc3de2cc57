"""Writes the tables of docs/reference/public.md and the list of public names: `python -m tests.manual.public_page`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

from tests.manual.blocks import DOCS

PAGE = DOCS / "reference" / "public.md"
NAMES = Path(__file__).resolve().parents[1] / "compat" / "public_names.txt"
ON_PYFLINKS_PATHS = ("ekorn.common", "ekorn.datastream", "ekorn.table")  # with every module below
ALONE = (
    "ekorn.dataset",
    "ekorn.pyflink",
    "ekorn.testing",
    "ekorn.testing.kafka",
    "ekorn.testing.kits",
    "ekorn.client",
    "ekorn.queryable",
    "ekorn.state_processor",
    "ekorn.state_processor.spark",
    "ekorn.metrics",
    "ekorn.errors",
)
OWN, OF_PYFLINK = "## Paths of Ekorn's own\n", "## On PyFlink's paths\n"


def public_modules() -> list[str]:
    """Return the path of every public module."""
    return [path for package in ON_PYFLINKS_PATHS for path in _with_modules_below(package)] + list(ALONE)


def _with_modules_below(package: str) -> list[str]:
    module = importlib.import_module(package)
    return [package, *(found.name for found in pkgutil.walk_packages(module.__path__, f"{package}."))]


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    return sorted(getattr(module, "__all__", []))


def page() -> str:
    """Return the text of docs/reference/public.md: its own words, and the tables of paths."""
    words, _, _ = PAGE.read_text(encoding="utf-8").partition(OWN)
    of_pyflink = [path for path in public_modules() if path not in ALONE]
    meant = "With `ekorn` in place of `pyflink`. Connectors and formats that PyFlink lacks are among them."
    return f"{words}{OWN}\n{_table(list(ALONE))}\n{OF_PYFLINK}\n{meant}\n\n{_table(of_pyflink)}"


def _table(paths: list[str]) -> str:
    rows = [f"| `{path}` | {_sentence(importlib.import_module(path))} |\n" for path in paths]
    return "| path | has |\n|---|---|\n" + "".join(rows)


def _sentence(module: ModuleType) -> str:
    assert module.__doc__ is not None, module.__name__
    first = module.__doc__.strip().splitlines()[0].replace("|", "\\|")
    return re.sub(r"(: see|\. See) docs/\S+\.md\.$", ".", first)


def names() -> str:
    """Return the text of the list of public names: a line for each module, and a line for each name in it."""
    lines = []
    for path in public_modules():
        lines += [path, *(f"    {name}" for name in names_of(importlib.import_module(path)))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    NAMES.write_text(names(), encoding="utf-8")
