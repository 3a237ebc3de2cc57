"""Runs in Spark's Python worker: carries blobs between Spark's shuffle and the slots.

A row is `(partition, (level, partition, blob))`: Spark moves it to that partition of the next stage. A row for a
deeper level passes through untouched, and so does an acknowledgement, which goes to level `DRIVER`. Nothing here looks
inside a blob. A failure is a row like any other: Spark's own error handling is for failures of Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tamias.engine.spark.task_side.run_subtask import run_subtask
from tamias.engine.subtask_outcome import SubtaskFailure, SubtaskOutcome
from tamias.errors import SlotLostError
from tamias.graph.addresses import SubtaskId
from tamias.operators.epoch import Ack, EpochOrder
from tamias.slot.link import Address, Link, connect
from tamias.slot.messages import RunEpoch
from tamias.subtask.wire.frames import destination_of
from tamias.types.by_value import dumps

DRIVER = -1  # the level of rows for the driver
POISON = -2  # the level of rows that tell a region that it has failed upstream: its subtasks do not run

Row = tuple[int, tuple[int, int, bytes]]  # plain tuples: Spark pickles every row, and a class would be named in each

_MAX_LINKS = 64
_links: dict[tuple[Address, bytes], Link] = {}  # by slot address and secret; kept while Spark reuses the worker


@dataclass(frozen=True)
class HostedSubtask:
    """The subtask that a partition runs, and the slot that hosts it."""

    id: SubtaskId
    slot: int
    address: Address
    region: int  # subtasks of one region fail together


@dataclass(frozen=True)
class Route:
    """The destination of an exchange's blobs: the target's level, and the partition of the target's first subtask."""

    level: int
    first_partition: int


@dataclass(frozen=True)
class LevelTask:
    """One level of one epoch. Spark calls it once for each partition."""

    level: int
    subtasks: tuple[HostedSubtask, ...]  # by partition
    next_partitions: int  # partitions of the next level; 1 after the last level
    routes: dict[int, Route]  # by exchange
    secret: bytes
    attempt: int
    order: EpochOrder
    repeatable: bool  # whether Spark may run a task again, or twice at a time

    def __call__(self, partition: int, rows: Iterable[Any]) -> Iterator[Row]:
        blobs: list[bytes] = []
        subtask = self.subtasks[partition]
        poisoned = False
        if self.level > 0:
            for _, (level, target, data) in rows:
                if level == self.level:
                    blobs.append(data)
                elif level == POISON:
                    poisoned = poisoned or target == subtask.region
                else:
                    yield self._row(level, target, data)
        if poisoned:
            yield from self._poison(subtask)  # a region has a subtask on every level down to its last
        else:
            yield from self._run(subtask, blobs)

    def _run(self, subtask: HostedSubtask, blobs: list[bytes]) -> Iterator[Row]:
        link: Link | None = None
        outcome: SubtaskOutcome | None = None
        request = RunEpoch(subtask.id, self.attempt, self.order, self.repeatable)
        try:
            link = self._link(subtask)
            for item in run_subtask(link, request, blobs):
                if isinstance(item, SubtaskOutcome):
                    outcome = item
                else:
                    exchange, target = destination_of(item)
                    route = self.routes[exchange]
                    yield self._row(route.level, route.first_partition + target, item)
        except (OSError, EOFError) as error:
            yield from self._fail(subtask, dumps(SlotLostError(subtask.slot, str(error) or type(error).__name__)))
            return
        finally:
            # Spark may also close this generator half-way. The rest of the answer must not be read by another task.
            if outcome is None:
                _links.pop((subtask.address, self.secret), None)
                if link is not None:
                    link.close()
        assert outcome is not None, "a slot answers with an outcome, or its connection breaks"
        if outcome.succeeded:
            yield self._row(DRIVER, 0, outcome.pickled)
        else:
            yield from self._fail(subtask, outcome.pickled)

    def _link(self, subtask: HostedSubtask) -> Link:
        key = (subtask.address, self.secret)
        link = _links.get(key)
        if link is None:
            if len(_links) > _MAX_LINKS:  # most belong to jobs that have ended
                for old in _links.values():
                    old.close()
                _links.clear()
            link = _links[key] = connect(subtask.address, self.secret)
        return link

    def _fail(self, subtask: HostedSubtask, pickled_error: bytes) -> Iterator[Row]:
        yield self._row(DRIVER, 0, dumps(SubtaskFailure(subtask.id, pickled_error)))
        yield from self._poison(subtask)

    def _poison(self, subtask: HostedSubtask) -> Iterator[Row]:
        for partition in range(self.next_partitions):
            yield partition, (POISON, subtask.region, b"")

    def _row(self, level: int, partition: int, data: bytes) -> Row:
        via = partition if level == self.level + 1 else partition % self.next_partitions
        return max(via, 0), (level, partition, data)


def partition_of(key: int) -> int:
    """Return the partition of a row: its key. Spark calls this as its partition function."""
    return key


def driver_rows(rows: Iterable[Row]) -> list[Ack | SubtaskFailure]:
    """Unpickle what the last level's rows hold for the driver: acknowledgements and failures."""
    return [pickle.loads(data) for _, (level, _, data) in rows if level == DRIVER]
