"""What a task tells the driver about itself when it has ended: for people who watch the job.

The result of the job does not depend on it: a report that is lost, or comes twice because Spark has repeated the task,
changes what is shown and nothing else. `OperatorReport` is the part of a task's result that counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import compress, repeat
from operator import length_hint
from typing import Any, NamedTuple, Protocol

from ekorn.types.by_value import dumps

__all__ = ["Records", "TaskReport", "TaskReports", "packed_accumulators"]

_MOST_ACCUMULATOR_BYTES = 1 << 16  # larger ones are seen at the end of the job


class TaskReport(NamedTuple):
    """What one task has done.

    Attributes:
        stage: The number of its stage among all that the job has made.
        vertex: The vertex of the job graph that the stage belongs to.
        partition: The partition.
        records_in: The records that it has read, from a source or from a shuffle.
        records_out: The records that it has written, to a shuffle or to the driver.
        bytes_in: The size of what it has read from other tasks.
        bytes_out: The size of what it has written.
        ended_ms: When it ended, in milliseconds since 1970.
        busy_ms: How long it took.
        accumulators: The accumulators of its functions by name, pickled; empty if there are none, or if they are large.
    """

    stage: int
    vertex: int
    partition: int
    records_in: int
    records_out: int
    bytes_in: int
    bytes_out: int
    ended_ms: int
    busy_ms: float
    accumulators: bytes = b""


class TaskReports(Protocol):
    """Takes reports where the tasks run, and brings them to the driver."""

    def add(self, term: list[TaskReport]) -> None:
        """Take reports."""


class Records:
    """Counts the records of an iterator as they pass."""

    def __init__(self) -> None:
        self._rest = repeat(True, sys.maxsize)

    def counted(self, records: Iterator[Any]) -> Iterator[Any]:
        """Return the same records."""
        return compress(records, self._rest)  # it takes one of the rest with each: no code of Python runs for a record

    @property
    def number(self) -> int:
        """How many records have passed."""
        return sys.maxsize - length_hint(self._rest)


def packed_accumulators(found: Mapping[str, Any]) -> bytes:
    """Return the accumulators of a task for its report."""
    if not found:
        return b""
    try:
        packed = dumps(dict(found))
    except Exception:  # raised by an accumulator of the user; the result of the task says so if it needs to be sent
        return b""
    return packed if len(packed) <= _MOST_ACCUMULATOR_BYTES else b""
