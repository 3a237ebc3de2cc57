"""The processes of drivers: the service leaves no ended child behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ekorn.service.jobs.job_process import (
    Started,
    check_command,
    drivers_below,
    end_process,
    end_runs_below,
    found_driver,
    is_alive,
    start_driver,
)
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_store import JobStore
from tests.live_jobs import parent_of, process_state, until


def driver(folder: Path) -> Started:
    """Start a driver whose program sleeps."""
    store = JobStore(str(folder))
    job = JobRecord(f"{1:032x}", "job", "p" * 64 + "_job.py.zip", "job.py", phase="STARTED", run="1-1")
    store.save(job)
    script = store.job_folder(job.job_id) / "job.py"
    script.write_text("import time\ntime.sleep(600)")
    return start_driver(store, job, script)


def test_a_driver_that_ends_while_it_is_looked_at_is_no_zombie_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may end after the service asked for its exit code, and before the service reads its state."""
    started = driver(tmp_path)
    assert is_alive(*started)
    os.kill(started.pid, signal.SIGKILL)
    until(lambda: process_state(started.pid) == "Z")
    monkeypatch.setattr(subprocess.Popen, "poll", lambda child: None)  # what it returned a moment ago
    assert not is_alive(*started)
    assert parent_of(started.pid) == 0


def test_a_process_of_another_start_is_not_the_one_that_is_asked_for(tmp_path: Path) -> None:
    started = driver(tmp_path)
    assert not is_alive(started.pid, started.pid_started - 1)  # and the driver, which runs, is not waited for
    assert is_alive(*started)
    end_process(*started, at_once=True)
    assert parent_of(started.pid) == 0


def test_a_process_that_is_older_than_the_submission_is_no_driver_of_it(tmp_path: Path) -> None:
    """Such as the driver of an earlier run that takes its time to end."""
    earlier, store, job_id = driver(tmp_path), JobStore(str(tmp_path)), f"{1:032x}"
    until(lambda: found_driver(store, job_id) == earlier)
    until(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") > earlier.pid_started + 1)
    later = driver(tmp_path)
    until(lambda: len(drivers_below(tmp_path / "jobs")) == 2)
    assert found_driver(store, job_id) == later
    end_process(*later, at_once=True)
    assert found_driver(store, job_id) is None and is_alive(*earlier)
    end_process(*earlier, at_once=True)


def test_a_process_of_another_user_with_the_command_line_of_a_driver_is_no_driver(tmp_path: Path) -> None:
    started, store = driver(tmp_path), JobStore(str(tmp_path))
    until(lambda: found_driver(store, f"{1:032x}") == started)  # the system shows a command a moment after its start
    assert found_driver(store, f"{1:032x}", uid=os.geteuid() + 1) is None
    assert [each.pid for each in drivers_below(tmp_path / "jobs")] == [started.pid]
    assert drivers_below(tmp_path / "jobs", uid=os.geteuid() + 1) == []
    end_process(*started, at_once=True)


def test_programs_of_checks_are_ended_if_the_user_of_the_service_owns_them_and_their_folder_is_named(
    tmp_path: Path,
) -> None:
    """Root could kill the processes of any user who gives them the command line of a check."""
    (tmp_path / "job.py").write_text("import time\ntime.sleep(600)")
    command = check_command(tmp_path / "job.py", [], {}, tmp_path)
    with subprocess.Popen(command, start_new_session=True) as process:
        until(lambda: b"submission.json" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
        assert end_runs_below([tmp_path], uid=os.geteuid() + 1) == 0
        assert end_runs_below([tmp_path / "other"]) == 0
        assert end_runs_below([]) == 0
        assert process.poll() is None
        assert end_runs_below([tmp_path]) == 1
        assert process.wait(60) == -signal.SIGKILL
