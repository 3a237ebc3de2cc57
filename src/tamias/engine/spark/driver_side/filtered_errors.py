"""Runs in the driver: leaves one line of Java's out of what Spark's process writes to standard error.

Spark starts Java with a module that is still incubating, and Java says so at every start. The line concerns no user.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_UNWANTED = b"WARNING: Using incubator modules: jdk.incubator.vector"


@contextmanager
def errors_without_java_s_warning() -> Iterator[None]:
    """Give processes started inside the block a standard error without the line; everything else passes through.

    A thread copies what they write for as long as they live. The driver's own descriptor is back after the block.
    """
    own = os.dup(2)
    reading, writing = os.pipe()
    threading.Thread(target=_copy, args=(reading, own), name="tamias-java-errors", daemon=True).start()
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(own, 2)  # the thread keeps its copy, and closes it when the last process has ended


def _copy(reading: int, own: int) -> None:
    """Copy lines until all writers have ended; pass a part of a line on once it cannot be the unwanted one."""
    pending = b""
    while data := os.read(reading, 65_536):
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            if line.rstrip() != _UNWANTED:
                _write(own, line + b"\n")
        if pending and not _UNWANTED.startswith(pending):
            _write(own, pending)
            pending = b""
    _write(own, pending)
    os.close(reading)
    os.close(own)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
