"""Runs of collected records: pickled in the slot, unpickled when the program reads them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ekorn.types.by_value import dumps, dumps_up_to

__all__ = ["CollectedRun", "collected_runs"]

_RUN_RECORDS = 1_000
_RUN_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """Some records that a subtask has collected, in order."""

    pickled: bytes
    count: int

    @property
    def size_bytes(self) -> int:
        return len(self.pickled)

    def read(self) -> CollectedRun:
        """Return this run: it is in memory."""
        return self

    def records(self) -> list[Any]:
        """Unpickle the records."""
        return list(pickle.loads(self.pickled))


def collected_runs(records: list[Any]) -> Iterator[CollectedRun]:
    """Cut records into runs of at most a thousand records and, unless one record is larger, a mebibyte.

    >>> [run.count for run in collected_runs(list(range(2_500)))]
    [1000, 1000, 500]
    """
    for start in range(0, len(records), _RUN_RECORDS):
        yield from _within_bytes(records[start : start + _RUN_RECORDS])


def _within_bytes(records: list[Any]) -> Iterator[CollectedRun]:
    pickled = dumps_up_to(records, _RUN_BYTES) if len(records) > 1 else dumps(records)
    if pickled is not None:
        yield CollectedRun(pickled, len(records))
    else:
        middle = len(records) // 2
        yield from _within_bytes(records[:middle])
        yield from _within_bytes(records[middle:])
