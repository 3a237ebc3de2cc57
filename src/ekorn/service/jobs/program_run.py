"""Runs a program of a user to its end, for a check or a plan: with bounds of its time and of its output.

The service keeps the beginning and the end of what the program writes. A program that writes without end is ended with
all processes of its group, so it can fill neither the memory of the service nor its own time limit.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ekorn.errors.base import shortened
from ekorn.storage.result_modes import PRIVATE_UMASK, with_users_umask

__all__ = ["KeptOutput", "ProgramRun", "run_program"]

_MOST_OUTPUT_BYTES = 64 << 20  # a program that writes more is ended
_KEPT_BYTES = 32 << 10  # of the beginning, and of the end
_SHOWN = 3000  # characters in an error
_LOOK_S = 0.1  # the interval of looking whether the program has ended


class ProgramRun(NamedTuple):
    """The end of a program: its exit code, and what it wrote, cut to what an error shows."""

    exit_code: int
    said: str


class KeptOutput:
    """The beginning and the end of a stream of bytes."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        """Add bytes; forget those in the middle."""
        self.size += len(data)
        room = _KEPT_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * _KEPT_BYTES:
            del self._tail[:-_KEPT_BYTES]

    def text(self) -> str:
        """Return what is kept, with a note of what is not."""
        left_out = self.size - len(self._head) - len(self._tail)
        note = f"\n[... {left_out} bytes are left out ...]\n" if left_out else ""
        return f"{self._head.decode('utf-8', 'replace')}{note}{self._tail.decode('utf-8', 'replace')}"


def run_program(
    command: Sequence[str], folder: Path, timeout_s: float, most_bytes: int = _MOST_OUTPUT_BYTES
) -> ProgramRun:
    """Run a program in a folder until it ends; end the processes that it has left in its group.

    Raises:
        subprocess.TimeoutExpired: The time is up; the program was ended.
        OSError: The program cannot be started.
    """
    deadline = time.monotonic() + timeout_s
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=with_users_umask(os.environ),
        umask=PRIVATE_UMASK,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    assert process.stdout is not None and process.stderr is not None, "both are pipes"
    outputs = {process.stdout.fileno(): KeptOutput(), process.stderr.fileno(): KeptOutput()}
    said, complained = outputs.values()
    try:
        with selectors.DefaultSelector() as selector:
            for each in outputs:
                os.set_blocking(each, False)
                selector.register(each, selectors.EVENT_READ)
            while selector.get_map() and said.size + complained.size <= most_bytes:
                if time.monotonic() >= deadline:
                    raise subprocess.TimeoutExpired(list(command), timeout_s)
                has_ended = process.poll() is not None  # before the look: what was written until then is there
                ready = selector.select(0 if has_ended else _LOOK_S)
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    outputs[key.fd].add(data)
                    if not data:
                        selector.unregister(key.fd)
                if has_ended and not ready:
                    break  # a child that holds the pipes open is not waited for
        is_endless = said.size + complained.size > most_bytes
        if not is_endless:
            process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the group is empty
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()
    text = shortened((complained if complained.size else said).text().strip(), _SHOWN)
    if is_endless:
        text = f"it was stopped because it wrote more than {most_bytes >> 20} MiB: {text}"
    return ProgramRun(process.returncode, text)
