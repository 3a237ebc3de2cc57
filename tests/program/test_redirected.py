"""Programs without a terminal: under nohup, systemd, cron or CI, with output in a file and standard input closed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live_jobs import until
from tests.program.terminal import PRELUDE, SOURCE

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("runtime_dir")]

PROGRAM = """
env.configure(Configuration.from_dict({{"ekorn.web": "auto"}}))
env.enable_checkpointing(50).get_checkpoint_config().set_checkpoint_storage_dir({folder!r})

def slow(number):
    while number == 10 and not os.path.exists({go!r}):
        time.sleep(0.01)
    return number

numbers(20).map(slow).print()
env.execute("numbers")
"""


def started(program: str, tmp_path: Path, how: str) -> subprocess.Popen[bytes]:
    """Start a program in a shell that redirects as `how` says; Python buffers as it does by default."""
    (tmp_path / "program.py").write_text(PRELUDE + program)
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONUNBUFFERED", "TERM")}
    command = f"exec {sys.executable} program.py {how}"
    return subprocess.Popen(["sh", "-c", command], cwd=tmp_path, env=env | {"PYTHONPATH": str(SOURCE)})


def test_lines_about_a_job_and_its_records_are_in_the_file_when_they_happen(tmp_path: Path) -> None:
    go, log = tmp_path / "go", tmp_path / "log"
    process = started(PROGRAM.format(folder=str(tmp_path / "chk"), go=str(go)), tmp_path, "> log 2>&1 <&-")
    try:
        until(lambda: (log.exists() and log.read_text().count("\n") >= 1) or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        assert log.read_text().startswith("job 'numbers' ("), "the job waits, and its first line is there"
        go.touch()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    start, *records, end = log.read_text().splitlines()
    assert " starts on this process" in start and re.search(r", web http://127\.0\.0\.1:\d+", start)
    assert end.startswith("job 'numbers' finished after ")
    assert records == [str(number) for number in range(20)]
    assert not [character for character in log.read_text() if character < " " and character != "\n"], "no bars"


@pytest.mark.parametrize("how", ["> log 2>&-", ">&- 2>&- <&-"])
def test_a_program_without_standard_error_runs_to_its_end(tmp_path: Path, how: str) -> None:
    (tmp_path / "go").touch()
    program = PROGRAM.format(folder=str(tmp_path / "chk"), go=str(tmp_path / "go")) + "open('done', 'w').close()\n"
    assert started(program, tmp_path, how).wait(60) == 0
    assert (tmp_path / "done").exists()
