"""Runs in the driver: leaves out what Spark's processes write to standard error and what concerns no user.

Spark starts Java with a module that is still incubating, and Java says so at every start. Spark's Python daemon prints
a traceback when a task is cancelled before its worker has told Spark of its end. Every interrupted job would show both.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_WARNING = b"WARNING: Using incubator modules: jdk.incubator.vector"
_TRACEBACK = b"Traceback (most recent call last):"
_DAEMON = b"pyspark/daemon.py"
_BROKEN_PIPE = b"BrokenPipeError:"


@contextmanager
def errors_without_spark_s_own() -> Iterator[None]:
    """Give processes started inside the block a standard error without these lines; everything else passes through.

    A thread copies what they write for as long as they live. The driver's own descriptor is back after the block.
    """
    own = os.dup(2)
    reading, writing = os.pipe()
    threading.Thread(target=_copy, args=(reading, own), name="ekorn-java-errors", daemon=True).start()
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(own, 2)  # the thread keeps its copy, and closes it when the last process has ended


def _copy(reading: int, own: int) -> None:
    wanted = WantedLines()
    while data := os.read(reading, 65_536):
        _write(own, wanted.of(data))
    _write(own, wanted.rest())
    os.close(reading)
    os.close(own)


class WantedLines:
    """Picks the wanted lines from what arrives. A part of a line passes at once if no unwanted line begins so."""

    def __init__(self) -> None:
        self._pending = b""  # a part of a line
        self._traceback: list[bytes] = []  # its lines so far

    def of(self, data: bytes) -> bytes:
        """Return what is wanted of all that has arrived by now and was not returned before."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        wanted = b"".join(self._line(line + b"\n") for line in lines)
        may_be_unwanted = any(each.startswith(self._pending) for each in (_WARNING, _TRACEBACK))
        if self._pending and not self._traceback and not may_be_unwanted:
            wanted += self._pending
            self._pending = b""
        return wanted

    def rest(self) -> bytes:
        """Return what was held back, at the end."""
        held, self._traceback = b"".join(self._traceback), []
        return held + self._pending

    def _line(self, line: bytes) -> bytes:
        if self._traceback and line.startswith(b"  "):  # a frame
            self._traceback.append(line)
            return b""
        traceback, self._traceback = b"".join(self._traceback), []
        if _DAEMON in traceback and line.startswith(_BROKEN_PIPE):
            return b""
        if line.rstrip() == _TRACEBACK:
            self._traceback = [line]
            return traceback
        return traceback if line.rstrip() == _WARNING else traceback + line


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
