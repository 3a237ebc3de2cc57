"""A sink for benchmarks: notes when each record came, so that a pause of the job can be seen afterwards."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ekorn.datastream.functions import SinkFunction

_NOTE = "<qqq"


class NotedRecord(NamedTuple):
    """When the sink was opened and when it got the record, in nanoseconds of the monotonic clock; the record."""

    opened_ns: int
    at_ns: int
    value: int


class NoteTimes(SinkFunction):
    """Appends the time of every record to a file. Records are numbers."""

    def __init__(self, path: str) -> None:
        self._path = path

    def open(self, runtime_context: Any) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._opened_ns = time.monotonic_ns()

    def invoke(self, value: int, context: Any) -> None:
        os.write(self._file, struct.pack(_NOTE, self._opened_ns, time.monotonic_ns(), value))

    def close(self) -> None:
        os.close(self._file)


def noted_records(path: Path) -> Iterator[NotedRecord]:
    """Yield what is noted in a file, if there is one. A note that is half written is left out."""
    data = path.read_bytes() if path.exists() else b""
    for fields in struct.iter_unpack(_NOTE, data[: len(data) - len(data) % struct.calcsize(_NOTE)]):
        yield NotedRecord(*fields)
