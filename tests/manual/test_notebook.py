"""The notebook of the tutorial is made from its chapters, and its cells run in a kernel."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from tests.manual.blocks import ROOT
from tests.manual.notebook import NOTEBOOK, written
from tests.servers.kafka.broker import kafka

__all__ = ["kafka"]
SECONDS_PER_CELL = 240


def test_the_notebook_is_made_from_the_chapters():
    assert NOTEBOOK.read_text(encoding="utf-8") == written(), "run python -m tests.manual.notebook"


def run_cells(folder: Path, cells: list[str]) -> None:
    """Run cells in a kernel of their own; fail at the first error."""
    manager = KernelManager()
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PATH": folders}
    manager.start_kernel(cwd=str(folder), env=environment)
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        for cell in cells:
            answer = client.execute_interactive(cell, timeout=SECONDS_PER_CELL, output_hook=lambda message: None)
            content = answer["content"]
            assert content["status"] == "ok", f"{cell}\n{chr(10).join(content.get('traceback', []))}"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def code_cells(chapters: slice) -> list[str]:
    """Return the code of some chapters of the notebook."""
    by_chapter: list[list[str]] = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and source.startswith("# "):
            by_chapter.append([])
        elif cell["cell_type"] == "code":
            by_chapter[-1].append(source)
    return [code for chapter in by_chapter[1:][chapters] for code in chapter]


IN_PROCESS = "from ekorn.testing import on_local_engine\nengine = on_local_engine()\nengine.__enter__()"


def test_the_cells_that_need_no_processes_run_in_a_kernel(tmp_path):
    run_cells(tmp_path, [IN_PROCESS, *code_cells(slice(0, 5)), *code_cells(slice(6, 7))])


@pytest.mark.spark
@pytest.mark.soak
def test_the_whole_notebook_runs_on_spark(tmp_path, kafka):
    cells = [cell.replace("localhost:9092", kafka.servers) for cell in code_cells(slice(None))]
    run_cells(tmp_path, cells)
