"""Which tests reach which lines: measured once by coverage, kept for each test file until its text changes.

Processes that a test starts are measured too, and count for the test that started them.

When the code has changed since, its lines are matched with those that were measured. A test that reaches a line only by
the change is not found then: the score may be too low, and never too high, since a mutant is killed by a test that ran.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from coverage import CoverageData

from tests.mutation.mutant import DEFINITIONS, Mutant

CHOSEN = "not soak and not spark"
SLOW = ("driver/test_storage_by_url.py",)  # the other long file of these rooms, of slots in processes, is needed
_PHASE = re.compile(r"(\|(setup|run|teardown)| \((setup|call|teardown)\))$")
_SETTINGS = """\
[run]
source = ekorn
parallel = true
sigterm = true
patch = _exit
plugins = tests.mutation.saved_at_kill
context = ${{PYTEST_CURRENT_TEST-}}
data_file = {folder}/data
"""


class ReachingTest(NamedTuple):
    """A test that reaches a mutant, and the seconds it took when it was measured."""

    node_id: str
    seconds: float


class Reach:
    """The measured tests: for each, its seconds, and the lines of each module that it ran."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._tests: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))

    def add(self, measured: dict[str, Any]) -> None:
        """Add what was measured of one test file."""
        self._seconds.update(measured["seconds"])
        for path, tests in measured["lines"].items():
            for node_id, lines in tests.items():
                if node_id in self._seconds:
                    for line in lines:
                        self._tests[path][line].add(node_id)

    def tests_of(self, mutant: Mutant, code: str) -> list[ReachingTest]:
        """Return the tests that run the statement of a mutant, or else its function, the quickest first.

        Of a module that no test was seen to run, which may be new, any test may notice a change.
        """
        shown_by = lines_that_show(code, mutant.line)
        if not shown_by or mutant.path not in self._tests:
            return self._in_order(set(self._seconds))
        tests = self._tests[mutant.path]
        for lines in shown_by:
            if reaching := set().union(*(tests[line] for line in lines if line in tests)):
                return self._in_order(reaching)
        return []

    def _in_order(self, tests: set[str]) -> list[ReachingTest]:
        return sorted((ReachingTest(test, self._seconds[test]) for test in tests), key=lambda t: (t.seconds, t))


def lines_that_show(code: str, line: int) -> list[set[int]]:
    """Return sets of lines, the best first: whoever runs one of them may notice a change of this line.

    What runs when a module is imported (constants, defaults of arguments) is noticed by whoever runs its functions. A
    module without functions holds values; any test may notice a change of their defaults, and the list is empty.
    """
    tree = ast.parse(code)
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _holds(node, line)]
    around.sort(key=lambda node: (node.lineno, -(node.end_lineno or 0)))
    functions = [node for node in around if isinstance(node, DEFINITIONS) and not isinstance(node, ast.ClassDef)]
    if not functions or line < functions[0].body[0].lineno:
        inside = functions or [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        return [{at for node in inside for at in _body(node)}] if inside else []
    innermost = around[-1]
    first_inside = getattr(innermost, "body", [None])[0]
    end = max(innermost.lineno, first_inside.lineno - 1) if first_inside else innermost.end_lineno or line
    return [{*range(innermost.lineno, end + 1), line}, _body(functions[-1]), _body(functions[0])]


def measure(workspace: Path, places: list[str], kept: Path, *, again: bool = False) -> Reach:
    """Return the reach of the tests in these folders and files; run those that changed, or all of them `again`."""
    kept.mkdir(parents=True, exist_ok=True)
    sources = {str(path.relative_to(workspace / "src" / "ekorn")): path for path in (workspace / "src").rglob("*.py")}
    code = _digest(sorted(sources.values()))[:16]
    slow = [workspace / "tests" / name for name in SLOW]
    patterns = [place if place.endswith(".py") else f"{place}/**/test_*.py" for place in places]
    files = sorted(path for pattern in patterns for path in (workspace / "tests").glob(pattern))
    files = [path for path in files if path not in slow]
    stored = {}
    for path in files:  # examples in docstrings are tests that change with the code
        read = [path, *sorted(sources.values())] if path.name == "test_docstrings.py" else [path]
        stored[path] = kept / f"{path.stem}-{_digest(read)[:16]}.json"
    stale = [path for path, place in stored.items() if again or not place.exists()]
    if stale:
        print(f"measuring which lines the tests of {len(stale)} files reach", flush=True)
        measured_code = {name: path.read_text() for name, path in sources.items()}
        (kept / f"code-{code}.json").write_text(json.dumps(measured_code))
        for name, measured in _run(workspace, stale).items():
            stored[workspace / name].write_text(json.dumps(measured | {"code": code}))
    reach = Reach()
    for place in stored.values():
        measured = json.loads(place.read_text())
        before = _code(kept / f"code-{measured['code']}.json")
        measured["lines"] = {
            path: _moved(tests, moves(before[path], sources[path].read_text()))
            for path, tests in measured["lines"].items()
            if path in sources and path in before
        }
        reach.add(measured)
    return reach


@cache
def _code(place: Path) -> dict[str, str]:
    code: dict[str, str] = json.loads(place.read_text())
    return code


@cache
def moves(before: str, after: str) -> dict[int, int] | None:
    """Return the new number of each line that is still there; None if nothing has changed."""
    if before == after:
        return None
    blocks = difflib.SequenceMatcher(
        None, before.splitlines(), after.splitlines(), autojunk=False
    ).get_matching_blocks()
    return {old + i + 1: new + i + 1 for old, new, size in blocks for i in range(size)}


def _moved(tests: dict[str, list[int]], by: dict[int, int] | None) -> dict[str, list[int]]:
    if by is None:
        return tests
    return {test: [by[line] for line in lines if line in by] for test, lines in tests.items()}


def _run(workspace: Path, files: list[Path]) -> dict[str, dict[str, Any]]:
    """Run these test files under coverage; return, for each, the seconds and the lines of its tests."""
    data = workspace.parent / "coverage"
    data.mkdir(exist_ok=True)
    for old in data.iterdir():
        old.unlink()
    (data / "settings").write_text(_SETTINGS.format(folder=data))
    environment = os.environ | {"CI": "1", "PYTHONPATH": f"{workspace / 'src'}{os.pathsep}{workspace}"}
    names = [str(path.relative_to(workspace)) for path in files]
    options = ["-q", "-p", "no:cacheprovider", "-p", "tests.mutation.recorder", "-m", CHOSEN, "--cov=ekorn"]
    options += [f"--cov-config={data / 'settings'}", "--cov-context=test", "--cov-report="]
    command = [sys.executable, "-m", "pytest", *options, "--hypothesis-profile=fast", *names]
    environment["EKORN_MUTATION_MEASURED"] = str(data)
    code = subprocess.run(command, cwd=workspace, env=environment, check=False).returncode
    if code not in (0, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit("mutation: the tests could not be run")
    seconds = json.loads((data / "seconds.json").read_text())
    for failed in json.loads((data / "failed.json").read_text()):
        print(f"{failed} fails without a mutant, and is left out until its file changes", flush=True)
        seconds.pop(failed, None)
    return split_by_file(workspace, names, _lines_by_test(workspace, data), seconds)


def split_by_file(
    workspace: Path, names: list[str], lines: dict[str, dict[str, list[int]]], seconds: dict[str, float]
) -> dict[str, dict[str, Any]]:
    """Arrange what was measured by test file, so that each file can be measured again alone."""
    arranged: dict[str, dict[str, Any]] = {name: {"seconds": {}, "lines": defaultdict(dict)} for name in names}
    for node_id, spent in seconds.items():
        arranged[node_id.partition("::")[0]]["seconds"][node_id] = spent
    for path, tests in lines.items():
        for node_id, reached in tests.items():
            if node_id.partition("::")[0] in arranged:
                arranged[node_id.partition("::")[0]]["lines"][path][node_id] = reached
    return arranged


def _lines_by_test(workspace: Path, data: Path) -> dict[str, dict[str, list[int]]]:
    """Read coverage's files: module below src/ekorn -> test -> lines."""
    found: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for part in sorted(data.glob("data*")):
        read = CoverageData(str(part))
        read.read()
        for name in read.measured_files():
            path = name.partition("src/ekorn/")[2]
            for line, contexts in read.contexts_by_lineno(name).items():
                for context in contexts:
                    if context:
                        found[path][_PHASE.sub("", context)].add(line)
    return {path: {test: sorted(lines) for test, lines in tests.items()} for path, tests in found.items()}


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _body(function: Any) -> set[int]:
    return set(range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1))


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
