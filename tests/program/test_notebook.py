"""Jobs in a notebook, in a kernel of Jupyter: what its cells show, and what an interrupt of the kernel does."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from ekorn.driver.display.progress_display import NotebookOutput
from tests.program.terminal import PRELUDE, SOURCE

START = r"job '{}' \([0-9a-f]{{32}}\) starts on this process, without Spark, parallelism 1"


class Cell:
    """Takes what IPython's `display` is called with."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> Cell:
        assert raw and display_id and not self.shown
        self.update(content, raw=raw)
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        self.shown.append(content["text/plain"])


def test_the_lines_about_a_job_are_one_output_that_changes():
    cell = Cell()
    output = NotebookOutput(cell.display)
    output.begin("starts")
    output.update("runs")
    output.end("ends")
    output.end(None)
    assert cell.shown == ["starts", "starts\nruns", "starts\nends", "starts"]


# ------------------------------------------------------------------------------------------------- a real kernel


@dataclass
class Shown:
    """What a cell shows in the end."""

    printed: dict[str, str] = field(default_factory=dict)  # by stream
    displays: dict[str, str] = field(default_factory=dict)  # text by display, the last state
    changes: int = 0
    result: dict[str, str] = field(default_factory=dict)
    error: list[str] = field(default_factory=list)


class Notebook:
    """A kernel whose jobs run in its own process and are shown as those on Spark."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._client = manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)
        self.run(PRELUDE)

    def run(self, code: str, *, when_shown: Callable[[Shown], bool] | None = None) -> Shown:
        """Run a cell to its end; interrupt the kernel once `when_shown` is true of what the cell shows."""
        shown, sent = Shown(), self._client.execute(code)
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            content = message["content"]
            match message["msg_type"]:
                case "stream":
                    shown.printed[content["name"]] = shown.printed.get(content["name"], "") + content["text"]
                case "display_data" | "update_display_data":
                    shown.displays[content["transient"]["display_id"]] = content["data"]["text/plain"]
                    shown.changes += 1
                case "execute_result":
                    shown.result = content["data"]
                case "error":
                    shown.error = "\n".join(content["traceback"]).splitlines()
                case "status" if content["execution_state"] == "idle" and message["parent_header"]["msg_id"] == sent:
                    return shown
            if when_shown is not None and when_shown(shown):
                when_shown = None
                self._manager.interrupt_kernel()

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def notebook() -> Iterator[Notebook]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=os.environ | {"PYTHONPATH": str(SOURCE)}, cwd=os.path.dirname(sys.executable))
    opened = Notebook(manager)
    yield opened
    opened.close()


def plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


@pytest.mark.long
def test_a_cell_shows_the_stream_that_is_its_last_line(notebook):
    shown = notebook.run("numbers(10).map(lambda n: n).name('same')")
    assert shown.result["text/plain"] == "DataStream(same)"
    assert "<svg" in shown.result["text/html"] and "same" in shown.result["text/html"]
    notebook.run("env.close()")


@pytest.mark.long
def test_the_lines_about_a_job_change_in_place_beside_what_the_cell_prints(notebook):
    shown = notebook.run("numbers(1500).filter(lambda n: n % 500 == 0).print()\nenv.execute('one')")
    assert shown.printed == {"stdout": "0\n500\n1000\n"}, "nothing about the job among what the cell prints"
    ((start, end),) = [text.splitlines() for text in shown.displays.values()]
    assert re.fullmatch(START.format("one"), start)
    assert re.fullmatch(r"job 'one' finished after [0-9.]+ s: 1,500 records read", end)
    assert shown.changes > 2, "a line of progress was shown in between"


@pytest.mark.long
def test_the_next_cell_runs_the_next_job(notebook):
    assert notebook.run("list(numbers(3).map(lambda n: n + 1).execute_and_collect('two'))").result == {
        "text/plain": "[1, 2, 3]"
    }


@pytest.mark.long
def test_an_error_in_a_job_shows_the_cell_and_the_message_and_no_line_of_ekorn(notebook):
    shown = notebook.run("numbers(3).map(lambda n: 1 / (n - 1))\nenv.execute('three')")
    lines = [plain(line) for line in shown.error]
    text = "\n".join(lines)
    assert re.match(r'  File ".*", line 2, in <module>\n    env.execute\(.three.\)\nJobExecutionError: ', text)
    assert "JobExecutionError: job 'three' failed in operator 'Map' (subtask 0) on record 1: ZeroDivisionError" in text
    assert "    numbers(3).map(lambda n: 1 / (n - 1))" in lines, "the line of the cell that raised"
    assert "site-packages" not in text and "src/ekorn" not in text and len(lines) < 9, text


@pytest.mark.long
def test_an_interrupt_of_the_kernel_ends_the_job_in_one_line_and_the_notebook_goes_on(notebook):
    shown = notebook.run(
        "numbers(10**9).filter(lambda n: False).print()\nenv.execute('endless')",
        when_shown=lambda shown: any("\nrunning, " in text for text in shown.displays.values()),
    )
    assert shown.error == [
        "ekorn: Ctrl-C ended job 'endless'; it has no checkpoint in a directory, so the next run "
        "starts from the beginning"
    ]
    assert shown.printed == {}
    assert notebook.run("1 + 1").result == {"text/plain": "2"}


@pytest.mark.long
def test_a_job_in_the_background_leaves_the_cell_at_once_and_its_client_shows_a_table(notebook):
    shown = notebook.run("numbers(10**9).map(lambda n: n)\nclient = env.execute_async('behind')\nclient")
    assert shown.result["text/plain"].startswith("JobClient('behind', ") and "<table>" in shown.result["text/html"]
    assert notebook.run("client.cancel().result()").error == []
    assert "CANCELED" in notebook.run("client").result["text/plain"]
