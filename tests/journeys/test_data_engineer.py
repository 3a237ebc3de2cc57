"""A data engineer's first hour: the README's program, a fraud detector that is killed and resumed, and mistakes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.users import ROOT, environment, golden, run, user_python
from tests.live_jobs import until

PAYMENTS = ["fraud_detector.py", "--folder", "fraud"]
SLOW, FAST = ["--seconds", "24", "--rate", "500"], ["--seconds", "1", "--rate", "12000"]  # 12,000 payments each


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return user_python(tmp_path_factory.mktemp("user") / "venv")


@pytest.fixture
def ekorn(python: str, tmp_path: Path) -> Iterator[Ekorn]:
    started = Ekorn(python, tmp_path)
    yield started
    started.kill_all()


class Ekorn:
    """The command `ekorn` in a folder of the user, whose jobs no other test reaches."""

    def __init__(self, python: str, folder: Path) -> None:
        self._python = python
        self.folder = folder
        self._env = environment(EKORN_RUNTIME_DIR=str(folder / "run"))
        self._running: list[subprocess.Popen[str]] = []

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run([self._python, "-m", "ekorn", *arguments], self.folder, self._env)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        command = [self._python, "-m", "ekorn", *arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=self.folder, env=self._env, stdout=pipe, stderr=pipe, text=True)
        self._running.append(process)
        return process

    def kill_all(self) -> None:
        """Kill what still runs."""
        for process in self._running:
            process.kill()
            process.communicate()


def completed(folder: Path) -> set[str]:
    """Return the checkpoints of all jobs in a folder."""
    return {str(path.parent.relative_to(folder)) for path in folder.glob("*/chk-*/_metadata")}


def test_the_program_of_the_readme_prints_its_counts(ekorn: Ekorn) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (ekorn.folder / "program.py").write_text(program)
    done = ekorn("run", "-p", "2", "program.py")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["1> ('acorn', 1)", "1> ('acorn', 2)", "2> ('walnut', 1)"]
    starts, ended = done.stderr.splitlines()
    assert starts.startswith("job 'first job' (") and ended.startswith("job 'first job' finished after ")


def test_a_fraud_detector_is_killed_resumed_stopped_and_continued_with_every_alert_once(ekorn: Ekorn) -> None:
    shutil.copy(ROOT / "examples" / "fraud_detector.py", ekorn.folder)
    checkpoints = ekorn.folder / "fraud" / "checkpoints"

    first = ekorn.start("run", "-p", "2", *PAYMENTS, *SLOW)
    until(lambda: len(completed(checkpoints)) > 1 or first.poll() is not None, within_s=90)
    first.kill()  # kill -9
    _, said = first.communicate()
    assert completed(checkpoints), said
    (job,) = {path.split("/")[0] for path in completed(checkpoints)}
    seen = completed(checkpoints)

    second = ekorn.start("run", "--resume", "-p", "2", *PAYMENTS, *SLOW)
    until(lambda: completed(checkpoints) - seen or second.poll() is not None, within_s=90)
    listed = ekorn("list").stdout.splitlines()[1:]
    assert [line.split()[0] for line in listed] == [job]
    stopped = ekorn("stop", "-p", "savepoints", "fraud detector")
    assert stopped.returncode == 0, stopped.stderr
    (savepoint,) = (ekorn.folder / "savepoints").iterdir()
    assert str(savepoint) in stopped.stdout
    output, said = second.communicate(timeout=120)
    assert second.returncode == 0, said
    assert "0 wrong or twice, " in output and "twice, 0 still to come" not in output

    last = ekorn("run", "-s", str(savepoint), "-p", "3", *PAYMENTS, *FAST)
    assert last.returncode == 0, last.stdout + last.stderr
    assert last.stdout.splitlines()[-1] == "0 wrong or twice, 0 still to come"


MISTAKES = {
    "a program that is not there": ["run", "programm.py"],
    "a misspelt option": ["run", "-D", "ekorn.progres=off", "fraud_detector.py"],
    "a setting without a value": ["run", "-D", "parallelism.default", "fraud_detector.py"],
    "two starting points": ["run", "--resume", "-s", "savepoints/savepoint-1", "fraud_detector.py"],
    "a savepoint that is not there": ["run", "-s", "savepoints/savepoint-1", "fraud_detector.py"],
    "nothing to resume from": ["run", "--resume", "forgetful.py"],
    "a job that does not run": ["stop", "fraud detector"],
}


def test_mistakes_on_the_command_line_are_answered_with_what_to_do(ekorn: Ekorn) -> None:
    shutil.copy(ROOT / "examples" / "fraud_detector.py", ekorn.folder)
    (ekorn.folder / "forgetful.py").write_text(
        "from ekorn.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).print()\n"
        "env.execute('forgetful')\n"
    )
    said = ""
    for mistake, arguments in MISTAKES.items():
        done = ekorn(*arguments)
        said += f"--- {mistake}\n$ ekorn {' '.join(arguments)}\n{done.stdout}{done.stderr}exit code {done.returncode}\n"
    said, wanted = golden("command_line", said, {str(ekorn.folder): "<folder>"})
    assert said == wanted
