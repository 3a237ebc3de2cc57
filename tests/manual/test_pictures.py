"""The pictures of the manual are those that the scripts in docs/pictures draw."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.manual.blocks import DOCS

PICTURES = DOCS / "pictures"
SCRIPTS = [path for path in sorted(PICTURES.glob("*.py")) if "def drawings()" in path.read_text(encoding="utf-8")]


def drawn(script: Path) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location(f"pictures_{script.stem}", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: drawing.render() for name, drawing in module.drawings().items()}


@pytest.fixture
def scripts(monkeypatch):
    """Let scripts find the shapes beside them, as Python does for a script that is run."""
    monkeypatch.syspath_prepend(str(PICTURES))
    yield SCRIPTS
    sys.modules.pop("svg", None)


def test_every_picture_is_what_its_script_draws(scripts):
    found = {name: text for script in scripts for name, text in drawn(script).items()}
    assert sorted(found) == sorted(path.stem for path in PICTURES.glob("*.svg"))
    old = [name for name, text in found.items() if (PICTURES / f"{name}.svg").read_text(encoding="utf-8") != text]
    assert not old, f"run the scripts in docs/pictures again: {', '.join(old)}"


def test_every_picture_is_shown():
    pages = "".join(path.read_text(encoding="utf-8") for path in [*DOCS.rglob("*.md"), DOCS.parent / "mkdocs.yml"])
    pictures = [path.name for path in PICTURES.iterdir() if path.suffix in {".svg", ".png"}]
    assert not [name for name in pictures if f"pictures/{name}" not in pages]
