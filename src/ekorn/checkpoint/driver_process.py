"""The identity of a driver process, as it signs its claim on a checkpoint directory."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass

__all__ = ["Driver"]


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver process.

    Attributes:
        host: The host name of its machine.
        pid: Its process id.
        process_start: When the process started. The system reuses process ids; pid and start together are unique.
        token: A name of its own.
        boot: The start of the machine's kernel, and the namespace of process ids: two machines or containers may have
            one host name. None where Linux does not tell, and in claims of earlier versions.
    """

    host: str
    pid: int
    process_start: str | None
    token: str
    boot: str | None = None

    @staticmethod
    def this_process() -> Driver:
        """Return the identity of this process, with a new token."""
        pid = os.getpid()
        return Driver(socket.gethostname(), pid, _process_start(pid), secrets.token_hex(16), _boot())

    def is_near(self, observer: Driver) -> bool:
        """Return whether the observer sees this process by its id, as long as it lives."""
        if self.host != observer.host:
            return False
        return self.boot is None or observer.boot is None or self.boot == observer.boot

    def is_gone(self, observer: Driver) -> bool:
        """Return whether the observer can tell that this process has ended; False if it lives or cannot be seen."""
        if not self.is_near(observer):
            return False
        if observer.process_start is None:  # this system does not tell when a process started
            return not _process_exists(self.pid)
        return _process_start(self.pid) != self.process_start


def _boot() -> str | None:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # no Linux
        return None


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
