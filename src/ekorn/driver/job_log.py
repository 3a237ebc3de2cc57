"""The log of a job: its start, plan, checkpoints, restarts and end, kept where `ekorn logs` finds it after the job.

    <runtime folder>/logs/<job id>/job.json      the name, process, start and status of the job
    <runtime folder>/logs/<job id>/driver.log    the lines, and `driver.log.1` those before

Every line goes to Python's logging as well, under the logger of the module that writes it. What a program prints is not
here: it goes where the program's standard output goes. A service keeps the logs of its jobs itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from ekorn.driver.runtime_folder import runtime_folder
from ekorn.errors import EkornError

__all__ = ["JobLog", "KeptLog", "kept_logs", "open_job_log"]

_log = logging.getLogger(__name__)

_FOLDER, _RECORD, _LINES = "logs", "job.json", "driver.log"
_MOST_LOGS = 50  # of jobs that have ended
_MOST_BYTES = 1 << 20  # of one file; each log has two
_RUNNING, _KILLED = "RUNNING", "KILLED"


@dataclass(frozen=True)
class KeptLog:
    """The log of a job that a program of this user has run on this machine.

    Attributes:
        status: The status that the job ended with, RUNNING, or KILLED if its driver ended without noting a status.
        started_ms: When the program started the job, the last time.
        folder: The folder of the log.
    """

    job_id: str
    name: str
    pid: int
    started_ms: int
    status: str
    folder: Path

    def files(self) -> list[Path]:
        """Return the files with the lines, the oldest first."""
        paths = [self.folder / f"{_LINES}.1", self.folder / _LINES]
        return [path for path in paths if path.is_file()]


class JobLog:
    """Writes what happens to a job to Python's logging, and to the file of the job if it has one. Thread-safe.

    Args:
        kept: The file's job; None for a job without a file.
        most_bytes: The size of one of the two files.
    """

    def __init__(self, kept: KeptLog | None = None, most_bytes: int = _MOST_BYTES) -> None:
        self._kept = kept
        self._file: logging.Handler | None = None
        self._lock: int | None = None
        if kept is not None:
            self._lock = os.open(kept.folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            self._file = _LogFile(kept.folder / _LINES, most_bytes)
            _write_record(kept)

    @property
    def path(self) -> Path | None:
        """The file with the lines."""
        return None if self._kept is None else self._kept.folder / _LINES

    def info(self, logger: logging.Logger, message: str, *values: object) -> None:
        """Write a line about the life of the job."""
        self.write(logger, logging.INFO, message, *values)

    def warning(self, logger: logging.Logger, message: str, *values: object) -> None:
        """Write a line about what went wrong."""
        self.write(logger, logging.WARNING, message, *values)

    def write(self, logger: logging.Logger, level: int, message: str, *values: object) -> None:
        """Write a line. Python's logging decides by itself whether it shows the line."""
        record = logger.makeRecord(logger.name, level, "", 0, message, values, None)
        if logger.isEnabledFor(level):
            logger.handle(record)
        if self._file is not None:
            self._file.handle(record)

    def end(self, status: str, why: str | None) -> None:
        """Note how the job ended, and why if it failed. Nothing is written after that."""
        if self._kept is None or self._file is None or self._lock is None:
            return
        if why is not None:
            record = _log.makeRecord(_log.name, logging.ERROR, "", 0, "%s", (why,), None)
            self._file.handle(record)  # Python's logging leaves it to the program, which the error is raised in
        self._file.close()
        try:
            _write_record(replace(self._kept, status=status))
        except OSError as error:
            _log.warning("the end of job %s could not be noted in %s: %s", self._kept.name, self._kept.folder, error)
        os.close(self._lock)
        self._file = self._lock = None


class _LogFile(RotatingFileHandler):
    """A file that holds the newest lines. A disk that is full costs lines, and not the job."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        super().__init__(path, maxBytes=most_bytes, backupCount=1, encoding="utf-8")
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        if not self._has_failed:
            self._has_failed = True
            _log.warning("lines are missing in %s, which cannot be written to", self.baseFilename, exc_info=True)


def open_job_log(
    job_id: str, name: str, now_ms: int, *, most_bytes: int = _MOST_BYTES, most_logs: int = _MOST_LOGS
) -> JobLog:
    """Return the log of a job that starts. A job that continues under its id continues its log.

    Args:
        job_id: The id of the job.
        name: The name of the job.
        now_ms: The time of day.
        most_bytes: The size of one of the two files of a log.
        most_logs: How many logs of jobs that have ended are kept, with this one, when the oldest are deleted. That
            happens when there are a fifth more.
    """
    try:
        folder = runtime_folder() / _FOLDER / job_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _drop_oldest(folder.parent, folder, most_logs)
        return JobLog(KeptLog(job_id, name, os.getpid(), now_ms, _RUNNING, folder), most_bytes)
    except (EkornError, OSError) as error:  # the job runs without it
        _log.warning("job %s keeps no log for `ekorn logs`: %s", name, error)
        return JobLog()


def kept_logs() -> list[KeptLog]:
    """Return the logs of this user's jobs on this machine, those of running jobs too; the newest first."""
    return sorted(_logs_in(runtime_folder() / _FOLDER), key=lambda each: each.started_ms, reverse=True)


def _logs_in(folder: Path) -> Iterator[KeptLog]:
    for each in folder.iterdir() if folder.is_dir() else ():
        try:
            found: dict[str, Any] = json.loads((each / _RECORD).read_bytes())
            log = KeptLog(**found, folder=each)
        except (OSError, ValueError, TypeError):
            continue  # it is being created, or was just removed
        yield log if log.status != _RUNNING or _is_held(each) else replace(log, status=_KILLED)


def _drop_oldest(folder: Path, spared: Path, most_logs: int) -> None:
    """Delete the oldest logs of jobs that have ended, if there are many.

    Most jobs only count the folders: to read the record of each, and to delete some, takes longer than a short job.
    """
    if len(os.listdir(folder)) <= most_logs + most_logs // 5:
        return
    ended = sorted(
        (each for each in _logs_in(folder) if each.status != _RUNNING and each.folder != spared),
        key=lambda each: each.started_ms,
    )
    for each in ended[: max(0, len(ended) - most_logs + 1)]:
        shutil.rmtree(each.folder, ignore_errors=True)


def _is_held(folder: Path) -> bool:
    """Return whether the driver that writes into a folder runs."""
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(lock)


def _write_record(kept: KeptLog) -> None:
    fields = {name: value for name, value in asdict(kept).items() if name != "folder"}
    fresh = kept.folder / f"{_RECORD}.{os.getpid()}"
    with contextlib.ExitStack() as undo:
        undo.callback(fresh.unlink, missing_ok=True)
        fresh.write_text(json.dumps(fields))
        os.replace(fresh, kept.folder / _RECORD)
