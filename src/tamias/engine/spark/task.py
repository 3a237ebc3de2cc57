"""What runs inside Spark's Python workers: it carries blobs between Spark's shuffle and the slots.

A row is `(partition, (level, partition, blob))`: Spark moves it to that partition of the next stage. A row for a
deeper level passes through untouched, and so do acknowledgements, which go to level `DRIVER`. Nothing here looks
inside a blob. A failure is a row like any other: Spark's own error machinery is for failures of Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tamias.errors import SlotLostError
from tamias.operators.epoch import EpochOrder
from tamias.slot.caller import Failed, Outcome, run_subtask
from tamias.slot.link import Address, Link, connect
from tamias.slot.messages import RunEpoch
from tamias.subtask.wire.frames import destination_of
from tamias.types.by_value import dumps

DRIVER = -1
POISON = -2  # an epoch that has failed upstream: its region does not run, and tells the rest

Row = tuple[int, tuple[int, int, bytes]]

_links: dict[tuple[Any, bytes], Link] = {}  # kept while Spark reuses the worker process


@dataclass(frozen=True)
class Stop:
    """Where the subtask of a partition lives."""

    vertex: int
    subtask: int
    slot: int
    address: Address
    region: int  # of the subtasks that fail together


@dataclass(frozen=True)
class Route:
    """Where the blobs of an exchange go: the level, and the partition of its target's first subtask."""

    level: int
    first_partition: int


@dataclass(frozen=True)
class LevelTask:
    """One level of one epoch: called by Spark for each partition."""

    level: int
    stops: tuple[Stop, ...]  # by partition
    next_partitions: int  # of the next level; 1 after the last
    routes: dict[int, Route]
    secret: bytes
    attempt: int
    order: EpochOrder

    def __call__(self, partition: int, rows: Iterable[Any]) -> Iterator[Row]:
        blobs: list[bytes] = []
        stop = self.stops[partition]
        poisoned = False
        if self.level > 0:
            for _, (level, target, data) in rows:
                if level == self.level:
                    blobs.append(data)
                elif level == POISON:
                    poisoned = poisoned or target == stop.region
                else:
                    yield self._row(level, target, data)
        if poisoned:
            yield from self._poison(stop)  # a region has a subtask on every level down to its last
        else:
            yield from self._run(stop, blobs)

    def _run(self, stop: Stop, blobs: list[bytes]) -> Iterator[Row]:
        link: Link | None = None
        outcome: Outcome | None = None
        request = RunEpoch(stop.vertex, stop.subtask, self.attempt, self.order)
        try:
            link = self._link(stop)
            for item in run_subtask(link, request, blobs):
                if isinstance(item, Outcome):
                    outcome = item
                else:
                    exchange, target = destination_of(item)
                    route = self.routes[exchange]
                    yield self._row(route.level, route.first_partition + target, item)
        except (OSError, EOFError) as error:
            if link is not None:
                link.close()
            _links.pop((stop.address, self.secret), None)
            yield from self._fail(stop, dumps(SlotLostError(stop.slot, str(error) or type(error).__name__)))
            return
        assert outcome is not None, "a slot answers with an outcome, or is gone"
        if outcome.good:
            yield self._row(DRIVER, 0, outcome.data)
        else:
            yield from self._fail(stop, outcome.data)

    def _fail(self, stop: Stop, pickled_error: bytes) -> Iterator[Row]:
        yield self._row(DRIVER, 0, dumps(Failed(stop.vertex, stop.subtask, pickled_error)))
        yield from self._poison(stop)

    def _link(self, stop: Stop) -> Link:
        key = (stop.address, self.secret)
        link = _links.get(key)
        if link is None:
            if len(_links) > 64:  # of jobs that are long over
                for old in _links.values():
                    old.close()
                _links.clear()
            link = _links[key] = connect(stop.address, self.secret)
        return link

    def _row(self, level: int, partition: int, data: bytes) -> Row:
        via = partition if level == self.level + 1 else partition % self.next_partitions
        return max(via, 0), (level, partition, data)

    def _poison(self, stop: Stop) -> Iterator[Row]:
        for partition in range(self.next_partitions):
            yield partition, (POISON, stop.region, b"")


def partition_of(key: int) -> int:
    """Spark's partition function: the key of a row is its partition."""
    return key


def outcomes(rows: Iterable[Row]) -> list[Any]:
    """What the driver finds in the rows of the last level: acknowledgements and errors."""
    return [pickle.loads(data) for _, (level, _, data) in rows if level == DRIVER]
