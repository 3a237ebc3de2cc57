"""BATCH mode: a keyed operator gets its whole input key by key, each key's records in order of their timestamps.

Records are sorted by key, in memory while they are few and in sorted runs on local disk once they are many.
"""

from __future__ import annotations

import heapq
import itertools
import os
import pickle
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from tamias.common.constants import MIN_TIMESTAMP
from tamias.wire.values import dumps

_IN_MEMORY = 500_000  # records sorted at once
_CHUNK = 10_000


class KeyedRun(NamedTuple):
    """All records of one key."""

    values: list[Any]
    times: list[int | None]


class KeySorter:
    """Takes records in any order and gives them back by key."""

    def __init__(
        self, key_of: Callable[[Any], Any], sort_key: Callable[[Any], Any], scratch: Callable[[], str]
    ) -> None:
        self._key_of = key_of
        self._sort_key = sort_key
        self._scratch = scratch
        self._held: list[tuple[Any, int, int, Any, int | None]] = []  # sort key, time, number, value, time as given
        self._count = itertools.count()
        self._runs: list[str] = []

    def add(self, values: list[Any], times: list[int | None] | None) -> None:
        """Take a run of records."""
        key_of, sort_key, count, held = self._key_of, self._sort_key, self._count, self._held
        for value, time in zip(values, times or itertools.repeat(None, len(values)), strict=True):
            held.append((sort_key(key_of(value)), MIN_TIMESTAMP if time is None else time, next(count), value, time))
        if len(held) >= _IN_MEMORY:
            self._spill()

    def groups(self) -> Iterator[KeyedRun]:
        """Every key's records; can be asked for once."""
        self._held.sort(key=itemgetter(0, 1, 2))
        runs: list[Iterator[Any]] = [iter(self._held), *(_read_run(path) for path in self._runs)]
        for _, records in itertools.groupby(heapq.merge(*runs, key=itemgetter(0, 1, 2)), key=itemgetter(0)):
            run = list(records)
            yield KeyedRun([r[3] for r in run], [r[4] for r in run])
        self._held = []

    def _spill(self) -> None:
        self._held.sort(key=itemgetter(0, 1, 2))
        path = os.path.join(self._scratch(), f"run-{len(self._runs)}")
        with open(path, "wb") as file:
            for start in range(0, len(self._held), _CHUNK):
                data = dumps(self._held[start : start + _CHUNK])
                file.write(len(data).to_bytes(8, "little") + data)
        self._runs.append(path)
        self._held.clear()


def _read_run(path: str) -> Iterator[Any]:
    with open(path, "rb") as file:
        while header := file.read(8):
            yield from pickle.loads(file.read(int.from_bytes(header, "little")))
    os.unlink(path)
