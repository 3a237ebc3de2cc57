"""One mutant against the tests that reach it, in a copy of the repository, in a process that is forked for it.

The copy is where the mutant is written, so that processes which a test starts run the mutant too, and the repository is
never touched. The fork saves the import of everything that no mutant changes.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import shutil
import signal
import sys
import time
from enum import Enum
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import Phase, settings

from tests.mutation.mutant import Mutant
from tests.mutation.reach import CHOSEN, ReachingTest

ROOT = Path(__file__).parents[2]
_COPIED = ("src", "tests", "examples", "docs", "README.md", "pyproject.toml")  # tests read pages, too
_IMPORTED_ONCE = ("pytest", "hypothesis", "hypothesis.stateful", "pytest_timeout", "pytest_cov", "xdist", "cloudpickle")
_IMPORTED_IF_THERE = ("pyarrow.fs", "rocksdict", "fsspec", "fastavro", "yaml")
_TEST_S = 30  # a test that takes longer with a mutant than this, or than ten times what it took, has timed out
_NO_TESTS = 5  # pytest's code; every other one but 0 is a failure
_OPTIONS = ["-q", "-x", "-p", "no:cacheprovider", "--tb=line", "-m", CHOSEN]


class Outcome(Enum):
    """What the tests said about a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    UNREACHED = "not reached"  # by any test: counted as survived


class Workspace:
    """A copy of the code and its tests, where one mutant at a time is put in place of its original."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        self._scratch = folder / "scratch"
        self._output = folder / "output"
        self._failed = folder / "failed"  # the test that failed, if one did
        self._passed: set[ReachingTest] = set()

    def refresh(self) -> None:
        """Copy what changed in the repository; compiled files of what did not change stay."""
        for name in _COPIED:
            source = ROOT / name
            for path in [source] if source.is_file() else source.rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    _copy_if_changed(path, self.root / path.relative_to(ROOT))
        for path in self.root.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and not (ROOT / path.relative_to(self.root)).exists():
                path.unlink()

    def source(self, path: str) -> Path:
        """Return the place of a module, given its path below src/ekorn."""
        return self.root / "src" / "ekorn" / path

    def try_out(self, mutant: Mutant, tests: list[ReachingTest]) -> Outcome:
        """Run these tests with the mutant in place. A test that fails without it as well does not count."""
        while tests:
            outcome = self._with_mutant(mutant, tests)
            failed = self._failed.read_text() if self._failed.exists() else ""
            noticed = [test for test in tests if test.node_id == failed]
            if outcome is Outcome.TIMED_OUT and not noticed:  # all of them together took too long
                return outcome if self._run(tests) is not Outcome.TIMED_OUT else Outcome.SURVIVED
            if outcome is Outcome.SURVIVED or not noticed or self._passes(noticed[0]):
                return outcome
            print(f"{failed} fails without a mutant, too", flush=True)
            tests = [test for test in tests if test not in noticed]
        return Outcome.SURVIVED

    def _with_mutant(self, mutant: Mutant, tests: list[ReachingTest]) -> Outcome:
        place = self.source(mutant.path)
        original = place.read_text()
        place.write_text(mutant.code)
        for compiled in (place.parent / "__pycache__").glob(f"{place.stem}.*.pyc"):
            compiled.unlink()
        try:
            return self._run(tests)
        finally:
            place.write_text(original)

    def _passes(self, test: ReachingTest) -> bool:
        """Return whether a test passes without a mutant; asked once for each test."""
        if test not in self._passed and self._run([test]) is Outcome.SURVIVED:
            self._passed.add(test)
        return test in self._passed

    def _run(self, tests: list[ReachingTest]) -> Outcome:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._failed.unlink(missing_ok=True)
        spent = sum(test.seconds for test in tests)
        timeout = max(_TEST_S, 10 * max(test.seconds for test in tests))
        child = os.fork()
        if child == 0:
            self._run_in_child([test.node_id for test in tests], timeout=timeout, cpu_s=timeout + 4 * spent)
        status = _wait(child, 2 * timeout + 10 * spent)
        if status is None:
            return Outcome.TIMED_OUT
        output = self._output.read_text(errors="replace")
        if os.WIFSIGNALED(status):
            return Outcome.TIMED_OUT if os.WTERMSIG(status) == signal.SIGXCPU else Outcome.KILLED
        code = os.WEXITSTATUS(status)
        if code == 0:
            return Outcome.SURVIVED
        if code == _NO_TESTS:
            raise SystemExit(f"mutation: pytest ran no test:\n{output}")
        return Outcome.TIMED_OUT if f"Timeout (>{timeout:.1f}s)" in output else Outcome.KILLED

    def _run_in_child(self, tests: list[str], *, timeout: float, cpu_s: float) -> NoReturn:
        code = 3
        try:
            os.setsid()
            os.chdir(self.root)
            output = os.open(self._output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(output, stream)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))
            sys.dont_write_bytecode = True
            paths = [str(self.root / "src"), str(self.root)]
            os.environ |= {"CI": "1", "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
            here = {"", str(ROOT), str(ROOT / "src")}
            sys.path = paths + [path for path in sys.path if path not in here]
            for name in [name for name in sys.modules if name == "tests" or name.startswith("tests.")]:
                del sys.modules[name]  # those of the repository; the child imports those of the copy
            options = [*_OPTIONS, f"--timeout={timeout}", f"--basetemp={self._scratch}", "--hypothesis-profile=fast"]
            code = int(pytest.main([*options, *tests], plugins=[_NoShrinking(), _FirstFailure(self._failed)]))
            sys.stdout.flush()
        finally:
            os._exit(code)


class _NoShrinking:
    """A plugin of pytest: one failing example is enough, and looking for the smallest would take a minute."""

    def pytest_collection_finish(self) -> None:
        fast = settings.get_profile("fast")
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("fast", fast, phases=phases, derandomize=True, database=None)
        settings.load_profile("fast")


class _FirstFailure:
    """A plugin of pytest that notes the test which fails."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._place.write_text(report.nodeid)


def import_what_no_mutant_changes() -> None:
    """Import the packages of others once, for every child."""
    for name in _IMPORTED_ONCE:
        importlib.import_module(name)
    for name in _IMPORTED_IF_THERE:
        try:
            importlib.import_module(name)
        except ImportError:
            continue  # an extra that is not installed; its tests are skipped


def _copy_if_changed(path: Path, target: Path) -> None:
    if not target.exists() or target.read_bytes() != path.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def _wait(child: int, seconds: float) -> int | None:
    """Wait for a child and end what it left behind; return its status, or None when it took too long."""
    deadline = time.monotonic() + seconds
    status: int | None = None
    while status is None and time.monotonic() < deadline:
        ended, result = os.waitpid(child, os.WNOHANG)
        if ended:
            status = result
        else:
            time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):  # nothing is left of its group
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return status
