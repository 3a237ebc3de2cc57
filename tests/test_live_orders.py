"""The demo, stopped, cancelled and continued on the local engine: it says what is on disk and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ekorn.common import Configuration, JobStatus
from ekorn.config.starting_configuration import set_command_line
from ekorn.driver.display.job_progress import JobProgress
from ekorn.testing.local_run import on_local_engine
from tests.example_modules import example
from tests.live_jobs import until

SLOW, FAST = ["--seconds", "30", "--rate", "200"], ["--seconds", "0.006", "--rate", "1000000"]  # 6,000 orders each
ALL_RIGHT = "  0 orders lost, 0 counted twice, 0 of "
SAVEPOINT, RESUME = "execution.savepoint.path", "ekorn.resume"

Line = tuple[int, str, int, int]


class Demo:
    """The demo in a folder: runs it, and ends its slow runs half-way."""

    def __init__(self, module: ModuleType, folder: Path, said: pytest.CaptureFixture[str]) -> None:
        self.module = module
        self.folder = folder
        self._said = said

    def run(self, speed: list[str], settings: dict[str, str] | None = None) -> tuple[int, list[str]]:
        """Return the exit code and the lines that it prints."""
        set_command_line(Configuration.from_dict(settings or {}))
        try:
            with on_local_engine():
                code = self.module.main([*speed, "--no-kill", "--folder", str(self.folder / "demo")])
        finally:
            set_command_line(None)
        return code, self._said.readouterr().out.splitlines()

    def run_until_checkpoint(self, then: Callable[[Any], object]) -> tuple[int, list[str]]:
        """Run it, and do something to its job when a checkpoint has been completed and more orders have been read."""

        def watch(job: Any, *_: object, **__: object) -> None:
            until(lambda: job.get_progress().checkpoints_completed > 0)
            read = job.get_progress().records_read
            until(lambda: job.get_progress().records_read > read)
            then(job)

        usual, self.module.watch = self.module.watch, watch  # type: ignore[attr-defined]
        try:
            return self.run(SLOW)
        finally:
            self.module.watch = usual  # type: ignore[attr-defined]

    def stop(self, job: Any) -> None:
        job.stop_with_savepoint(False, str(self.folder / "savepoints")).result()


@pytest.fixture
def demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Demo]:
    yield Demo(example("live_orders"), tmp_path, capsys)


def test_a_stopped_demo_has_every_order_up_to_its_savepoint_and_continues_from_it(demo: Demo) -> None:
    code, said = demo.run_until_checkpoint(demo.stop)
    (savepoint,) = (demo.folder / "savepoints").iterdir()
    assert code == 0 and said[-3].startswith(ALL_RIGHT), said
    assert said[-2].startswith("  Stopped with a savepoint; ") and "still to come" in said[-2]
    words = shlex.split(said[-1])
    assert words[:4] == ["ekorn", "run", "-s", str(savepoint)] and words[5:9] == SLOW

    code, said = demo.run(FAST, {SAVEPOINT: str(savepoint)})
    assert code == 0 and said[-1].startswith(ALL_RIGHT), said
    assert said[-2].startswith("  6,000 lines on disk")


def interrupt(job: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("end", [lambda job: job.cancel(), interrupt], ids=["cancelled", "Ctrl-C"])
def test_a_cancelled_demo_has_every_order_up_to_its_last_checkpoint_and_continues_from_it(demo: Demo, end: Any) -> None:
    code, said = demo.run_until_checkpoint(end)
    assert code == 0 and said[-3].startswith(ALL_RIGHT), said
    assert said[-2].startswith("  Cancelled; ")
    (checkpoint,) = (demo.folder / "demo" / "checkpoints").glob("*/chk-*")
    assert shlex.split(said[-1])[:4] == ["ekorn", "run", "-s", str(checkpoint)]

    code, said = demo.run(FAST, {SAVEPOINT: str(checkpoint)})
    assert code == 0 and said[-1].startswith(ALL_RIGHT), said
    assert said[-2].startswith("  6,000 lines on disk")


def test_a_demo_that_is_not_continued_starts_with_an_empty_folder(demo: Demo) -> None:
    for settings in ({}, {}, {RESUME: "true"}):  # no checkpoint of a job that has finished is left to resume
        code, said = demo.run(FAST, settings)
        assert code == 0 and said[-2].startswith("  6,000 lines on disk"), settings


def test_a_demo_that_starts_from_an_old_savepoint_says_why_orders_are_there_twice(demo: Demo) -> None:
    demo.run_until_checkpoint(demo.stop)
    (savepoint,) = (demo.folder / "savepoints").iterdir()
    demo.run(FAST, {SAVEPOINT: str(savepoint)})
    code, said = demo.run(FAST, {SAVEPOINT: str(savepoint)})
    assert code == 1 and said[-2].startswith("  0 orders lost, ")
    assert "held orders from after the starting point" in said[-1]


def test_two_demos_do_not_write_to_one_folder_and_no_other_folder_is_emptied(demo: Demo) -> None:
    folder = demo.folder / "demo"
    with demo.module.alone_in(folder), pytest.raises(SystemExit, match="another run writes to"):
        demo.run(FAST)
    (folder / "demo.lock").unlink()
    (folder / "revenue").mkdir()
    with pytest.raises(SystemExit, match="holds files of something else"):
        demo.run(FAST)


@pytest.mark.parametrize(
    "progress",
    [
        JobProgress(status=JobStatus.FINISHED, records_read=600),
        JobProgress(status=JobStatus.FINISHED, records_read=600, stopped_with="savepoint"),
        JobProgress(status=JobStatus.CANCELED, records_read=650),
    ],
    ids=["finished", "stopped", "cancelled"],
)
def test_an_order_that_is_lost_or_counted_twice_is_reported(demo: Demo, progress: JobProgress, capsys: Any) -> None:
    counts: dict[str, int] = {}
    lines: list[Line] = []
    for number in range(600):
        _, customer, _, _ = demo.module.order(number)
        counts[customer] = counts.get(customer, 0) + 1
        total = sum(demo.module.order(each)[3] for each in range(number % 500, number + 1, 500))
        lines.append((number, customer, counts[customer], total))

    def report(changed: list[Line]) -> tuple[int, str]:
        code = demo.module.report(progress, changed, 600, 0, "demo.py")
        return code, capsys.readouterr().out.splitlines()[1].strip()

    right = "0 of 500 customers with a wrong total"
    assert report(lines) == (0, f"0 orders lost, 0 counted twice, {right}")
    assert report(lines[1:]) == (1, "1 orders lost, 0 counted twice, 1 of 500 customers with a wrong total")
    assert report([*lines, lines[7]]) == (1, f"0 orders lost, 1 counted twice, {right}")
    number, customer, count, total = lines[-1]
    wrong = [*lines[:-1], (number, customer, count, total + 1)]
    assert report(wrong) == (1, "0 orders lost, 0 counted twice, 1 of 500 customers with a wrong total")
