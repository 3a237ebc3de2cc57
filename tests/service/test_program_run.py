"""Programs that the service runs for checks and plans: bounded output and time, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ekorn.config.settings.service_settings import ServiceSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.service.jobs.job_process import check_command
from ekorn.service.jobs.job_service import JobService
from ekorn.service.jobs.job_store import JobStore
from ekorn.service.jobs.program_run import KeptOutput, run_program
from tests.live_jobs import until


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_program_that_ends_says_its_errors_or_else_its_output(tmp_path):
    assert run_program(python("print('out')"), tmp_path, 30) == (0, "out")
    said = run_program(python("import sys; print('out'); sys.exit('it failed')"), tmp_path, 30)
    assert said == (1, "it failed")


def test_the_beginning_and_the_end_of_output_are_kept():
    kept = KeptOutput()
    for number in range(200_000):
        kept.add(b"line %d\n" % number)
    text = kept.text()
    assert text.startswith("line 0\n") and text.endswith("line 199999\n") and len(text) < 100_000
    assert "bytes are left out" in text


def test_a_program_that_writes_without_end_is_ended_with_its_children(tmp_path):
    code = """
import os, time
child = os.fork()
if not child:
    time.sleep(600)
print(f"child {child}", flush=True)
while True:
    os.write(1, b"again and again " * 4096)
"""
    started = time.monotonic()
    done = run_program(python(code), tmp_path, 60, most_bytes=8 << 20)
    assert time.monotonic() - started < 30
    assert done.exit_code != 0 and done.said.startswith("it was stopped because it wrote more than 8 MiB: child ")
    assert "left out" in done.said and len(done.said) < 4000
    until(lambda: is_gone(int(done.said.split("child ")[1].split()[0])))


def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path):
    code = "import os, time; os.fork(); open(f'{os.getpid()}.pid', 'w'); time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        run_program(python(code), tmp_path, 2)
    pids = [int(path.stem) for path in tmp_path.glob("*.pid")]
    assert len(pids) == 2
    until(lambda: all(map(is_gone, pids)))


def test_a_child_that_holds_the_output_open_is_not_waited_for(tmp_path):
    started = time.monotonic()
    code = "import os, time\nif not os.fork(): time.sleep(600)\nprint('parent', os.getpid())"
    done = run_program(python(code), tmp_path, 60)
    assert done.exit_code == 0 and "parent" in done.said and time.monotonic() - started < 30


def test_checks_and_plans_that_a_killed_service_left_are_ended_and_removed_by_the_next_start(tmp_path):
    folder = tmp_path / "service"
    store = JobStore(str(folder))
    check, plan = store.job_folder("0" * 32) / "check-abc", folder / "plan-abc"
    other = store.job_folder("0" * 32) / "savepoints"
    for each in (check, plan, other):
        each.mkdir(parents=True)
    (check / "savepoint").mkdir()
    script = tmp_path / "sleeps.py"
    script.write_text("import time\nprint('runs', flush=True)\ntime.sleep(600)\n")
    with subprocess.Popen(
        check_command(script, [], {}, check), stdout=subprocess.PIPE, process_group=0, env=os.environ
    ) as left:
        assert left.stdout is not None and left.stdout.readline() == b"runs\n"
        service = JobService(ServiceSettings(str(folder), WebSettings(port=0), slots=1))
        service.start()
        try:
            assert not check.exists() and not plan.exists() and other.exists()
            assert left.wait(30) == -9
        finally:
            left.kill()
            service.close()
