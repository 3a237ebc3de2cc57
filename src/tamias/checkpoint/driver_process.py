"""The identity of a driver process, as it signs its claim on a checkpoint directory."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass

__all__ = ["Driver"]


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver process."""

    host: str
    pid: int
    process_start: str | None  # the system reuses process ids; pid and start together are unique
    token: str

    @staticmethod
    def this_process() -> Driver:
        """Return the identity of this process, with a new token."""
        pid = os.getpid()
        return Driver(socket.gethostname(), pid, _process_start(pid), secrets.token_hex(16))

    def is_gone(self, observer: Driver) -> bool:
        """Return whether the observer can tell that this process has ended; False if it lives or cannot be seen."""
        if self.host != observer.host:
            return False
        if observer.process_start is None:  # this system does not tell when a process started
            return not _process_exists(self.pid)
        return _process_start(self.pid) != self.process_start


def _process_exists(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process exists and belongs to another user
        return True
    return True


def _process_start(pid: int) -> str | None:
    """Return when a process started, in the kernel's own count; None if there is no such process or no way to ask."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):  # the process is dead, and its parent has not noticed yet
        return None
    return fields[19].decode("ascii")
