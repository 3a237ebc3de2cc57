"""`ekorn logs`: prints the log of a job, of a service or of a program on this machine, whether it runs or has ended."""

from __future__ import annotations

import codecs
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ekorn.cli.found_jobs import FoundJob, find_logged_job
from ekorn.driver.job_log import KeptLog, kept_logs
from ekorn.errors import ConfigurationError
from ekorn.service.client.remote_job import RemoteJob
from ekorn.service.client.service_client import ServiceClient

__all__ = ["logs"]

_FOLLOW_S = 0.5
_MOST_OF_A_LINE = 1000  # bytes


def logs(service: ServiceClient | None, job: str, *, follow: bool, pause: Callable[[float], None] = time.sleep) -> int:
    """Print the log of a job; with `follow`, what is added too, until the job has ended.

    Raises:
        ConfigurationError: There is no such job, or it keeps no log.
    """
    found = find_logged_job(service, job)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a piece may end in the middle of a character
    pieces = _of_service(found, found.service, follow) if found.service is not None else _of_program(found)
    for piece, has_ended in pieces:
        sys.stdout.write(decoder.decode(piece, final=has_ended or not follow))
        sys.stdout.flush()
        if has_ended or not follow:
            return 0
        pause(_FOLLOW_S)
    return 0


def _of_service(found: FoundJob, service: ServiceClient, follow: bool) -> Iterator[tuple[bytes, bool]]:
    """Return what is new in the log at each look, and whether the job had ended before the look."""
    offset, remote = 0, RemoteJob(service.web, found.id)
    while True:
        has_ended = remote.status().is_terminal_state()
        answer = service.web.ask("GET", f"/jobs/{found.id}/log?offset={offset}")
        if answer.status == 200:
            offset += len(answer.body)
            yield answer.body, has_ended
        else:
            if not follow:
                answer.json()  # raises what the service says
            yield b"", has_ended


def _of_program(found: FoundJob) -> Iterator[tuple[bytes, bool]]:
    log = found.log
    if log is None:
        raise ConfigurationError(
            f"job {found.name!r} ({found.id}) keeps no log here: its driver could not write one, and has said why in "
            "its own output"
        )
    lines = _Lines(log)
    while True:
        has_ended = any(each.job_id == log.job_id and each.status != "RUNNING" for each in kept_logs())
        yield lines.new(), has_ended


class _Lines:
    """The lines of a log that other processes write, from file to file."""

    def __init__(self, log: KeptLog) -> None:
        self._log = log
        # The bytes that were read of a file. A full file is renamed, and the system may give its number to a later one.
        self._seen: dict[tuple[int, bytes], int] = {}

    def new(self) -> bytes:
        """Return what was added since the last call."""
        return b"".join(self._rest_of(path) for path in self._log.files())

    def _rest_of(self, path: Path) -> bytes:
        try:
            with open(path, "rb") as file:
                first_line = file.readline(_MOST_OF_A_LINE)
                if not first_line:
                    return b""
                this = os.fstat(file.fileno()).st_ino, first_line
                file.seek(self._seen.get(this, 0))
                found = file.read()
                self._seen[this] = file.tell()
                return found
        except FileNotFoundError:  # the log was just removed, because there are many newer ones
            return b""
