"""Blobs: the bytes that travel between Spark's stages, and from the last stage to the driver.

A blob is a byte that says what it holds, and a pickle: a run of records of the first or the second input, or reports.
Spark sees only bytes, so a record is pickled once for each stage it leaves, in runs and without pickle's memo.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from ekorn.types.by_value import dumps

__all__ = [
    "FIRST",
    "REPORTS",
    "SECOND",
    "BlobReader",
    "BlobSize",
    "OperatorReport",
    "OperatorSubtask",
    "SharedRecords",
    "encode",
    "encode_reports",
    "in_chunks",
]

FIRST, SECOND, REPORTS = 0, 1, 2

_HEADS = (b"\x00", b"\x01", b"\x02")
_TARGET_BYTES = 256 * 1024
_MOST_RECORDS = 8192
_RECORDS_AT_FIRST = 128
_CHUNK_RECORDS = 512


class OperatorSubtask(NamedTuple):
    """One operator in one subtask."""

    operator_number: int  # the number of the operator in the job
    subtask_index: int


class OperatorReport(NamedTuple):
    """What one operator in one subtask tells the driver when it ends.

    Reports travel with the records of their stage, so what arrives belongs to the attempt of the task whose records
    were used. A stage that is read twice sends its reports twice: the driver keeps one for each source.
    """

    source: OperatorSubtask
    accumulators: dict[str, Any]
    aggregates: dict[str, Any] = {}  # in a superstep: the values of an iteration's aggregators
    fields: bytes | None = None  # in a superstep: the fields of function objects, if they changed


class BlobSize:
    """Decides how many records make a blob: about 256 KiB of them."""

    def __init__(self) -> None:
        self.records = _RECORDS_AT_FIRST

    def encoded(self, side: int, records: list[Any]) -> bytes:
        """Return a blob of records, and learn from its size."""
        blob = encode(side, records)
        self.records = min(max(_TARGET_BYTES * len(records) // len(blob), 1), _MOST_RECORDS)
        return blob

    def chunks(self, records: Iterator[Any]) -> Iterator[list[Any]]:
        """Yield records in lists of the size that is right at the time."""
        while chunk := list(islice(records, self.records)):
            yield chunk


def in_chunks(records: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield records in lists, for loops that do something for many records at once."""
    while chunk := list(islice(records, _CHUNK_RECORDS)):
        yield chunk


def encode(side: int, records: list[Any]) -> bytes:
    """Return a blob of records."""
    return _HEADS[side] + dumps(records)


def encode_reports(reports: list[OperatorReport]) -> bytes:
    """Return a blob of reports."""
    return _HEADS[REPORTS] + dumps(reports)


class SharedRecords:
    """Records that every task reads whole: blobs that a worker decodes once for all of its tasks.

    The driver never decodes them.
    """

    def __init__(self, blobs: list[bytes]) -> None:
        self._blobs = blobs
        self._records: list[Any] | None = None

    def records(self) -> list[Any]:
        """Return the records: the same list at each call in one process."""
        if self._records is None:
            self._records = [record for blob in self._blobs for record in pickle.loads(memoryview(blob)[1:])]
            self._blobs = []
        return self._records


class BlobReader:
    """Reads the blobs of a task. Those of the first input come before those of the second; reports come anywhere.

    Attributes:
        reports: The reports found so far.
        records_read: The number of records that were decoded.
        bytes_read: The size of their blobs.
    """

    def __init__(self, blobs: Iterable[bytes]) -> None:
        self._blobs = iter(blobs)
        self._next: bytes | None = None
        self.reports: list[OperatorReport] = []
        self.records_read = 0
        self.bytes_read = 0

    def runs(self, side: int) -> Iterator[list[Any]]:
        """Yield the runs of records of an input, up to the first blob of another input."""
        while True:
            blob = self._next if self._next is not None else next(self._blobs, None)
            self._next = None
            if blob is None:
                return
            if blob[0] == REPORTS:
                self.reports += pickle.loads(memoryview(blob)[1:])
            elif blob[0] == side:
                run = pickle.loads(memoryview(blob)[1:])
                self.records_read += len(run)
                self.bytes_read += len(blob)
                yield run
            else:
                self._next = blob
                return

    def records(self, side: int) -> Iterator[Any]:
        """Return the records of an input."""
        return chain.from_iterable(self.runs(side))

    def pass_over(self) -> None:
        """Read to the end, for reports only: a function need not have read all records."""
        for blob in self._blobs:
            if blob[0] == REPORTS:
                self.reports += pickle.loads(memoryview(blob)[1:])
