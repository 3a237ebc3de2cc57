"""PySpark's daemon, whose workers keep a copy of all they read from Spark and write to it.

Spark starts it in place of its own daemon with `spark.python.daemon.module`. What Spark carries for a job, however it
stores or compresses it on the way, has to pass through a worker.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from pyspark import daemon

FOLDER = "EKORN_TEST_RECORDINGS"  # the variable that names the folder of the copies

_plain_worker = daemon.worker


class Recorded:
    """A file that also writes what is read from it, or written to it, to a second file."""

    def __init__(self, file: Any, copy: Any) -> None:
        self._file = file
        self._copy = copy

    def read(self, *size: int) -> bytes:
        data: bytes = self._file.read(*size)
        self._copy.write(data)
        return data

    def write(self, data: bytes) -> int:
        self._copy.write(data)
        written: int = self._file.write(data)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def recording_worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve a connection of Spark, as PySpark's own worker does, after the fork."""
    from pyspark import worker  # not before the fork: PySpark imports it there too

    if not hasattr(worker, "plain_main"):  # a worker serves one connection after the other
        worker.plain_main = plain = worker.main
        copy = (Path(os.environ[FOLDER]) / f"worker-{os.getpid()}").open("ab", buffering=0)
        worker.main = lambda infile, outfile: plain(Recorded(infile, copy), Recorded(outfile, copy))
    return _plain_worker(sock, authenticated)


if __name__ == "__main__":
    daemon.worker = recording_worker
    daemon.manager()
