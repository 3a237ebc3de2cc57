"""Writes docs/tutorial/tutorial.ipynb from the chapters of the tutorial: `python -m tests.manual.notebook`.

Text becomes text, a block of Python a cell, what it prints the cell's output. A block that is a file becomes a cell
that writes the file, and commands become cells of the shell.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.manual.blocks import DOCS, FENCE, Block, blocks_in

CHAPTERS = DOCS / "tutorial"
NOTEBOOK = CHAPTERS / "tutorial.ipynb"
_COMMENT = re.compile(r"^<!-- .* -->$", re.M)
HEAD = "The chapters as one notebook, written by `python -m tests.manual.notebook`. Run the cells in order."


def notebook() -> dict[str, Any]:
    """Return the notebook, as its file holds it."""
    cells = [_text(f"# Tutorial\n\n{HEAD}")]
    for chapter in sorted(CHAPTERS.glob("[0-9]-*.md")):
        cells += _cells(chapter.read_text(encoding="utf-8"))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cells(text: str) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = []
    at = 0
    for found, block in zip(FENCE.finditer(text), blocks_in(text), strict=True):
        before = _COMMENT.sub("", text[at : found.start()]).strip()
        if before:
            cells.append(_text(before))
        at = found.end()
        if block.title == "prints":
            cells[-1]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": _lines(block.text)}]
        elif block.not_run or block.run_by:
            cells.append(_text(f"```{block.language}\n{block.text}```"))
        else:
            cells.append(_code(block))
    rest = text[at:].strip()
    return [*cells, _text(rest)] if rest else cells


def _code(block: Block) -> dict[str, Any]:
    if block.is_file:
        source = f"%%writefile {block.title}\n{block.text}"
    elif block.language == "console":
        commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
        source = "%%bash\n" + "\n".join(commands)
    else:
        source = block.text
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": _lines(source.rstrip("\n")),
    }


def _text(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written() -> str:
    """Return the text of the file."""
    return json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(written(), encoding="utf-8")
