"""`tamias list`, `stop`, `cancel` and `savepoint trigger`: commands for running jobs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tamias.cli.savepoint_commands import absolute, print_table
from tamias.driver.control import JobGone, ask, desks
from tamias.errors import ConfigurationError

__all__ = ["cancel", "list_jobs", "stop", "trigger"]


def list_jobs() -> int:
    """Print a line for each job of this user that runs on this machine. The exit code is 1 if there is none."""
    jobs = [job for _, job in _running()]
    if not jobs:
        print("no jobs of yours run on this machine", file=sys.stderr)
        return 1
    rows = [
        (j["id"], j["name"], j["status"], f"{j['records']:,}", str(j["checkpoints"]), str(j["restarts"]), str(j["pid"]))
        for j in jobs
    ]
    print_table([("job", "name", "status", "records", "checkpoints", "restarts", "process"), *rows])
    return 0


def trigger(job: str, directory: str | None, *, native: bool) -> int:
    """Take a savepoint of a job that keeps running, and print its path."""
    return _savepoint(job, directory, native=native, then="go on")


def stop(job: str, directory: str | None, *, drain: bool, native: bool) -> int:
    """End a job with a savepoint, and print its path."""
    return _savepoint(job, directory, native=native, then="drain" if drain else "stop")


def cancel(job: str, *, with_savepoint: bool, directory: str | None) -> int:
    """Cancel a job, after a savepoint if one is wanted, and print the path of the savepoint."""
    if with_savepoint:
        return _savepoint(job, directory, native=False, then="cancel")
    desk, described = _find(job)
    status = ask(desk, {"ask": "cancel"})
    print(f"job {described['name']!r} is {status}")
    return 0 if status == "CANCELED" else 1


def _savepoint(job: str, directory: str | None, *, native: bool, then: str) -> int:
    desk, _ = _find(job)
    where = None if directory is None else absolute(directory)
    print(ask(desk, {"ask": "savepoint", "directory": where, "native": native, "then": then}))
    return 0


def _running() -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for desk in desks():
        try:
            found.append((desk, ask(desk, {"ask": "job"})))
        except JobGone:
            continue  # the job has just ended
    return found


def _find(job: str) -> tuple[Path, dict[str, Any]]:
    """Return the one job with this id or name, or with an id that begins with this text.

    Raises:
        ConfigurationError: No running job matches, or several do.
    """
    running = _running()
    exact = [(desk, found) for desk, found in running if job in (found["id"], found["name"])]
    matching = exact or [(desk, found) for desk, found in running if found["id"].startswith(job)]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(f"{found['id']} ({found['name']})" for _, found in matching or running)
    what = f"{len(matching)} running jobs are called" if matching else "no running job is called"
    raise ConfigurationError(
        f"{what} {job!r}; " + (f"there are: {known}" if known else "no jobs of yours run on this machine")
    )
