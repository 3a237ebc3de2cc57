"""An error shows the frames of the program. Those inside this package are counted, and shown if the user asks."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import MapFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import JobExecutionError
from ekorn.errors.frames import formatted, without_own_frames
from ekorn.program.running.shown_errors import show_errors
from ekorn.testing.local_run import collect_locally

PROGRAM = """
from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing import on_local_engine

configuration = Configuration.from_dict({"ekorn.errors.frames": "FRAMES"})
env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
env.from_collection([0]).map(lambda value: 1 / value).print()
with on_local_engine():
    env.execute("inverses")
"""


def said_by(folder: Path, frames: str) -> str:
    script = folder / "program.py"
    script.write_text(PROGRAM.replace("FRAMES", frames))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    return done.stderr


def test_a_program_that_an_error_ends_shows_its_own_lines(tmp_path: Path) -> None:
    said = said_by(tmp_path, "program")
    assert said.count('File "') == said.count(f'File "{tmp_path}/program.py"') == 2  # execute(), and the function
    assert said.rstrip().endswith("frames inside ekorn are left out; ekorn.errors.frames: all shows them]")
    said = said_by(tmp_path, "all")
    assert "/ekorn/driver/job_handle.py" in said and "<chain " in said and "left out" not in said


class Unkeyed(MapFunction):
    def map(self, value: Any) -> Any:
        return self.context.get_state(ValueStateDescriptor("x", None))

    def open(self, runtime_context: Any) -> None:
        self.context = runtime_context


def traceback_of(frames: str) -> str:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"ekorn.errors.frames": frames}))
    with pytest.raises(JobExecutionError) as raised:
        collect_locally(env.from_collection([1]).map(Unkeyed()))
    return str(raised.value.user_traceback)


def test_frames_below_those_of_the_user_are_counted_and_shown_on_demand() -> None:
    shown = traceback_of("program")
    assert shown.count('File "') == 1 and "in map" in shown
    assert "inside ekorn" in shown.splitlines()[-1]
    assert "/ekorn/operators/" in traceback_of("all")


def raised_by(call: Any) -> BaseException:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_a_defect_of_the_package_keeps_its_frames() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    refused = raised_by(lambda: env.set_parallelism(0))  # raised on purpose
    assert without_own_frames(refused, refused.__traceback__)[1] > 0
    defect = raised_by(lambda: without_own_frames(refused, "no traceback"))  # type: ignore[arg-type]
    assert without_own_frames(defect, defect.__traceback__) == (defect.__traceback__, 0)
    env.from_collection([1]).print()
    graph = env.job_graph("job")
    broken = raised_by(
        lambda: graph.slot_of(replace(graph.vertices[0], slot_group="none"), 0)
    )  # an assertion of this package
    assert isinstance(broken, AssertionError)
    assert without_own_frames(broken, broken.__traceback__) == (broken.__traceback__, 0)


def test_a_defect_that_a_function_of_the_user_meets_keeps_its_frames() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(JobExecutionError) as raised:
        collect_locally(env.from_collection([1]).map(lambda _: without_own_frames(ValueError(), "x")))  # type: ignore[arg-type]
    shown = str(raised.value.user_traceback)
    assert "in <lambda>" in shown and "in without_own_frames" in shown and "left out" not in shown


def test_a_context_that_is_not_shown_is_not_counted() -> None:
    def hides() -> None:
        try:
            StreamExecutionEnvironment.get_execution_environment().set_parallelism(0)
        except Exception:
            raise ValueError("mine") from None

    error = raised_by(hides)
    said = formatted(traceback.TracebackException.from_exception(error), error, all_frames=False)
    assert said.endswith("ValueError: mine")


@pytest.fixture
def default_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)


@pytest.mark.usefixtures("default_hook")
def test_a_debugger_finds_all_frames_after_the_error_was_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show_errors(all_frames=False)
    refused = raised_by(lambda: StreamExecutionEnvironment.get_execution_environment().set_parallelism(0))
    whole = refused.__traceback__
    sys.excepthook(type(refused), refused, whole)
    assert "src/ekorn/" not in capsys.readouterr().err and refused.__traceback__ is whole


@pytest.mark.usefixtures("default_hook")
def test_the_hook_of_a_program_stays_and_gets_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(*_: object) -> None:
        pass

    monkeypatch.setattr(sys, "excepthook", mine)
    StreamExecutionEnvironment.get_execution_environment()
    assert sys.excepthook is mine


@pytest.fixture
def frames_of_the_program() -> Iterator[None]:
    yield
    show_errors(all_frames=False)


@pytest.mark.usefixtures("default_hook", "frames_of_the_program")
def test_a_notebook_shows_all_frames_on_demand() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(JobExecutionError) as raised:
        collect_locally(env.from_collection([0]).map(lambda value: 1 / value))
    for all_frames in (False, True):
        show_errors(all_frames=all_frames)
        shown = "\n".join(raised.value._render_traceback_())
        assert ("/ekorn/driver/job_results.py" in shown) is all_frames
        assert "ZeroDivisionError" in shown


CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")
shell.run_cell("from ekorn.common import Configuration")
shell.run_cell("from ekorn.datastream import StreamExecutionEnvironment")
shell.run_cell('configuration = Configuration.from_dict({"ekorn.errors.frames": "FRAMES"})')
shell.run_cell("env = StreamExecutionEnvironment.get_execution_environment(configuration)")
print("=" * 9)
shell.run_cell("env.from_collection([1]).map(lambda value: value).set_parallelism(0)")
print("=" * 9)
shell.run_cell("env.from_collection(1 // number for number in [1, 0])")
print("=" * 9)
trace, files = sys.last_traceback, []
while trace is not None:
    files.append(trace.tb_frame.f_code.co_filename)
    trace = trace.tb_next
print(*files)
"""


def shown_by_cells(frames: str) -> list[str]:
    """Return what IPython shows for each of two failing cells, and the files in which a debugger finds frames."""
    cells = CELLS.replace("FRAMES", frames)
    done = subprocess.run([sys.executable, "-c", cells], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split("=" * 9)[1:]


def test_a_cell_of_a_notebook_shows_its_own_lines() -> None:
    refused, wrong, debugged = shown_by_cells("program")
    assert "ValueError" in refused and "set_parallelism(0)" in refused and "src/ekorn/" not in refused
    assert "ZeroDivisionError" in wrong and "src/ekorn/" not in wrong
    assert "inside ekorn" in refused and "left out; ekorn.errors.frames: all shows" in wrong
    assert "src/ekorn/" in debugged


def test_a_cell_of_a_notebook_shows_all_frames_on_demand() -> None:
    for shown in shown_by_cells("all")[:2]:
        assert "src/ekorn/" in shown and "left out" not in shown


def test_a_handler_of_errors_that_a_notebook_has_set_stays() -> None:
    cells = """
from IPython.core.interactiveshell import InteractiveShell
from ekorn.datastream import StreamExecutionEnvironment

shell = InteractiveShell.instance(colors="NoColor")
shell.set_custom_exc((ValueError,), lambda *error, **_: print("MINE"))
shell.user_ns["env"] = StreamExecutionEnvironment.get_execution_environment()
shell.run_cell("env.set_parallelism(0)")
"""
    done = subprocess.run([sys.executable, "-c", cells], capture_output=True, text=True, timeout=60, check=True)
    assert "MINE" in done.stdout and "set_parallelism" not in done.stdout
