"""The process of a job's driver.

It is started apart from the service, so that it keeps running when the service ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_store import JobStore, write_private
from ekorn.storage.result_modes import PRIVATE_UMASK, with_users_umask

__all__ = [
    "Started",
    "check_command",
    "drivers_below",
    "end_drivers_below",
    "end_process",
    "end_runs_below",
    "found_driver",
    "is_alive",
    "plan_command",
    "start_driver",
]


class Started(NamedTuple):
    """A process that was started. Its start time tells it apart from a later process with the same id."""

    pid: int
    pid_started: int


def start_driver(store: JobStore, record: JobRecord, script: Path) -> Started:
    """Start the driver of a job. A file describes what it runs, because every user can read a command line.

    Raises:
        OSError: The process cannot be started.
    """
    answers, submission = store.archive(record.job_id), store.submission(record.job_id)
    store.drop_answers(record.job_id)
    leader = store.watched_leader(record.run)
    _write_submission(submission, script, record.arguments, record.settings, answers=answers, leader=leader)
    log = os.open(store.log(record.job_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            _command(submission),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=script.parent,
            env=with_users_umask(os.environ),
            umask=PRIVATE_UMASK,
            start_new_session=True,
        )
    finally:
        os.close(log)
    _children[process.pid] = process
    return Started(process.pid, _start_of(process.pid) or 0)


def found_driver(store: JobStore, job_id: str, uid: int | None = None) -> Started | None:
    """Return the process that runs the driver of a job; None if there is none.

    The process is no older than the file that describes what it runs: an older one is the driver of an earlier run.

    Args:
        store: The store of the service.
        job_id: The job.
        uid: The user who must own the process: any user can give a process of his own the command line of a driver.
            None for the user of the service.
    """
    owner = os.geteuid() if uid is None else uid
    words = [os.fsencode(word) for word in _command(store.submission(job_id))[1:]]
    written = _written_at(store.submission(job_id))
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            is_driver = folder.stat().st_uid == owner and (folder / "cmdline").read_bytes().split(b"\0")[1:-1] == words
            is_first = is_driver and os.getsid(pid) == pid  # excludes children that the driver has forked
        except OSError:
            continue  # the process has ended
        start = _start_of(pid) if is_first else None
        if start is not None and start >= written:
            return Started(pid, start)
    return None


class FoundDriver(NamedTuple):
    """A driver that an earlier process of a service left behind: its process, and the file that describes its job."""

    pid: int
    submission: Path


def drivers_below(folder: Path, uid: int | None = None) -> list[FoundDriver]:
    """Return the drivers that run with submissions below a folder, of a user; None for the user of the service."""
    owner = os.geteuid() if uid is None else uid
    words, below = [os.fsencode(word) for word in _command(folder)[1:-1]], os.fsencode(f"{folder}{os.sep}")
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        try:
            *command, submission = (entry / "cmdline").read_bytes().split(b"\0")[1:-1] or [b""]
            is_own = entry.stat().st_uid == owner
            if is_own and command == words and submission.startswith(below) and os.getsid(pid) == pid:
                found.append(FoundDriver(pid, Path(os.fsdecode(submission))))
        except OSError:
            continue  # the process has ended
    return found


def end_drivers_below(folder: Path) -> int:
    """Kill the drivers that earlier processes of a service left behind; return how many there were."""
    ended = 0
    for driver in drivers_below(folder):
        with contextlib.suppress(OSError):  # the process has just ended
            os.killpg(driver.pid, signal.SIGKILL)
            ended += 1
    return ended


def end_runs_below(folders: Iterable[Path], uid: int | None = None) -> int:
    """Kill the programs that a service which was killed ran for checks and plans in folders; return their number.

    Args:
        folders: The folders.
        uid: The user who must own the processes, as in `found_driver`.
    """
    owner = os.geteuid() if uid is None else uid
    words, below = [os.fsencode(word) for word in _command(Path())[1:-1]], {os.fsencode(each) for each in folders}
    ended = 0
    for entry in Path("/proc").glob("[0-9]*") if below else ():
        pid = int(entry.name)
        with contextlib.suppress(OSError):  # the process has ended
            *command, submission = (entry / "cmdline").read_bytes().split(b"\0")[1:-1] or [b""]
            is_own = entry.stat().st_uid == owner
            if is_own and command == words and os.path.dirname(submission) in below and os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
                ended += 1
    return ended


def _command(submission: Path) -> list[str]:
    return [sys.executable, "-m", "ekorn", "submission", str(submission)]


def check_command(script: Path, arguments: Sequence[str], settings: Mapping[str, str], folder: Path) -> list[str]:
    """Return the command that runs a program with settings. A file in the folder describes what it runs."""
    _write_submission(folder / "submission.json", script, arguments, settings, answers=folder / "answers.json")
    return _command(folder / "submission.json")


def plan_command(
    script: Path, arguments: Sequence[str], settings: Mapping[str, str], folder: Path, plan: Path
) -> list[str]:
    """Return the command that writes the plan of a program's first job to a file, and runs no job."""
    file, answers = folder / "submission.json", folder / "answers.json"
    _write_submission(file, script, arguments, settings, answers=answers, plan=plan)
    return _command(file)


def _write_submission(
    file: Path,
    script: Path,
    arguments: Sequence[str],
    settings: Mapping[str, str],
    *,
    answers: Path,
    leader: Mapping[str, Any] | None = None,
    plan: Path | None = None,
) -> None:
    found: dict[str, Any] = {"script": str(script), "arguments": list(arguments), "settings": dict(settings)}
    found |= {"answers": str(answers), "leader": leader, "plan": None if plan is None else str(plan)}
    found["written_at"] = _ticks_now()
    write_private(file, json.dumps(found).encode())


_children: dict[int, subprocess.Popen[bytes]] = {}  # an ended child stays until its parent waits for it


def is_alive(pid: int, pid_started: int) -> bool:
    """Return whether a process that was started by this service, or an earlier one, still runs."""
    start = _start_of(pid)
    if start is None and (child := _children.pop(pid, None)) is not None:
        child.wait()  # returns at once, because the child has ended
    return start == pid_started


def end_process(pid: int, pid_started: int, *, at_once: bool = False) -> None:
    """Ask a process and its children to end, either in an orderly way or at once."""
    if is_alive(pid, pid_started):
        with contextlib.suppress(ProcessLookupError):  # the process has just ended
            if at_once:
                os.killpg(pid, signal.SIGKILL)
                child = _children.pop(pid, None)  # the thread that watches the drivers may have reaped it
                if child is not None:
                    child.wait()
            else:
                os.kill(pid, signal.SIGTERM)


def _written_at(submission: Path) -> int:
    """Return when a submission was written, in ticks since the machine started; 0 if the file does not tell."""
    try:
        return int(json.loads(submission.read_bytes())["written_at"])
    except (OSError, ValueError, TypeError, KeyError):  # no submission, or one of an earlier version
        return 0


def _ticks_now() -> int:
    """Return the time in the unit of `_start_of`."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def _start_of(pid: int) -> int | None:
    """Return when a process started, in ticks since the machine started; None if it does not run."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in ("Z", "X") else int(fields[18])
