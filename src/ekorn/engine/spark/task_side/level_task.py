"""Runs in Spark's Python worker: carries blobs between Spark's shuffle and the slots.

A row (`rows.py`) goes to a partition of the next stage. A row for a deeper level passes through untouched, and so does
an acknowledgement, which goes to level `DRIVER`. Nothing here looks inside a blob, and at most one blob is in memory: a
blob is sent to the slot, or to Spark, before the next is read. The failure of a subtask is a row too: Spark's own error
handling is left to failures of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ekorn.engine.spark.task_side.rows import DRIVER, POISON, ShuffleRow, decode
from ekorn.engine.spark.task_side.slot_links import drop_link, link_to
from ekorn.engine.subtask_outcome import PickledOutput, SubtaskFailure, SubtaskOutcome
from ekorn.errors import SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Address, Link
from ekorn.operators.epoch import EpochOrder
from ekorn.slot_protocol.task_messages import ACK, OUTPUT, RunEpoch
from ekorn.subtask.wire.frames import destination_of, is_blob
from ekorn.types.by_value import dumps


@dataclass(frozen=True)
class HostedSubtask:
    """The subtask that a partition runs, and the slot that hosts it."""

    id: SubtaskId
    slot: int
    address: Address
    region: int  # subtasks of one region fail together


@dataclass(frozen=True)
class ExchangeTarget:
    """The destination of an exchange's blobs: the target's level, and the partition of the target's first subtask."""

    level: int
    first_partition: int


@dataclass(frozen=True)
class LevelTask:
    """One level of one epoch. Spark calls it once for each partition."""

    level: int
    subtasks: tuple[HostedSubtask, ...]  # by partition
    next_partitions: int  # partitions of the next level; 1 after the last level
    routes: dict[int, ExchangeTarget]  # by exchange
    secret: bytes = field(repr=False)
    attempt: int
    order: EpochOrder
    repeatable: bool  # whether Spark may run a task again, or twice at a time

    def __call__(self, partition: int, rows: Iterable[bytes]) -> Iterator[ShuffleRow]:
        subtask = self.subtasks[partition]
        request = RunEpoch(subtask.id, self.attempt, self.order, self.repeatable)
        call = SubtaskCall(lambda: link_to(subtask.address, self.secret), request)
        poisoned = False
        try:
            for level, target, data in map(decode, rows if self.level > 0 else ()):
                if level == self.level:
                    call.give(data)
                elif level == POISON:
                    poisoned = poisoned or target == subtask.region
                else:
                    yield self._row(level, target, data)
            if poisoned:
                yield from self._poison(subtask)  # a region has a subtask on every level down to its last
            else:
                yield from self._answer(subtask, call)
        finally:
            # Spark may also close this generator half-way. The rest of the answer must not be read by another task.
            if call.link is not None and not call.is_over:
                drop_link(subtask.address, self.secret)

    def _answer(self, subtask: HostedSubtask, call: SubtaskCall) -> Iterator[ShuffleRow]:
        try:
            for item in call.answer():
                if isinstance(item, bytes):
                    exchange, target = destination_of(item)
                    route = self.routes[exchange]
                    yield self._row(route.level, route.first_partition + target, item)
                elif isinstance(item, SubtaskOutcome) and not item.succeeded:
                    yield from self._fail(subtask, item.pickled)
                else:
                    yield self._row(DRIVER, 0, item.pickled)
        except (OSError, EOFError) as error:
            yield from self._fail(subtask, dumps(SlotLostError(subtask.slot, str(error) or type(error).__name__)))

    def _fail(self, subtask: HostedSubtask, pickled_error: bytes) -> Iterator[ShuffleRow]:
        yield self._row(DRIVER, 0, dumps(SubtaskFailure(subtask.id, pickled_error)))
        yield from self._poison(subtask)

    def _poison(self, subtask: HostedSubtask) -> Iterator[ShuffleRow]:
        for partition in range(self.next_partitions):
            yield ShuffleRow(partition, POISON, subtask.region, b"")

    def _row(self, level: int, partition: int, data: bytes | memoryview) -> ShuffleRow:
        via = partition if level == self.level + 1 else partition % self.next_partitions
        return ShuffleRow(max(via, 0), level, partition, data)


class SubtaskCall:
    """One subtask's epoch, asked of its slot. Blobs go in one at a time, and come out one at a time.

    A failure of the connection while blobs go in is raised by `answer`, when the caller has passed on all other rows.
    Without Spark, `testing/process_engine.py` makes such calls from threads of the driver.

    Args:
        connect: Returns the connection to the slot. Called before the first message.
        request: The epoch.
    """

    def __init__(self, connect: Callable[[], Link], request: RunEpoch) -> None:
        self._connect = connect
        self._request = request
        self._error: OSError | EOFError | None = None
        self.link: Link | None = None  # once the call has begun
        self.is_over = False  # the connection can be used for the next call

    def give(self, blob: bytes | memoryview) -> None:
        """Send a blob of the epoch's input. Waits while the slot does not take it."""
        if self._error is None:
            try:
                self._begun().send(blob)
            except (OSError, EOFError) as error:
                self._error = error

    def answer(self) -> Iterator[bytes | PickledOutput | SubtaskOutcome]:
        """Let the subtask run; yield the encoded blobs and output that leave it, then the outcome.

        Raises:
            OSError: The slot or the connection to it is gone.
            EOFError: The slot closed the connection.
        """
        if self._error is not None:
            raise self._error
        link = self._begun()
        link.send(b"")
        while is_blob(message := link.receive()) or message[:1] == OUTPUT:
            yield message if is_blob(message) else PickledOutput(message[1:])
        self.is_over = True
        yield SubtaskOutcome(succeeded=message[:1] == ACK, pickled=message[1:])

    def _begun(self) -> Link:
        if self.link is None:
            self.link = self._connect()
            self.link.send(dumps(self._request))
        return self.link
