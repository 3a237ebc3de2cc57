"""Runs in Spark's Python worker as long as an attempt does: carries blobs between Spark's shuffle and a slot.

Blobs go both ways at the same time. A thread sends those that arrive to the slot, and the worker's own thread yields
those that leave it. Rows that wait already travel together, since most of a small row's cost is that of its batch.
Spark hands a row to Python when it has seen the next row, so an empty row for each target ends every batch. Nothing
here looks inside a blob. See docs/decisions/0033-continuous.md.
"""

from __future__ import annotations

import pickle
import queue
import threading
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from tamias.engine.spark.task_side.level_task import HostedSubtask
from tamias.engine.spark.task_side.rows import ShuffleRow, decode
from tamias.errors import SlotLostError
from tamias.slot.link import Link, connect
from tamias.slot.task_messages import Attach
from tamias.subtask.wire.frames import Destination, destination_of, is_blob
from tamias.types.by_value import dumps

__all__ = ["LEAST_ROW_BYTES", "SCHEMA", "ConduitTask", "TaskAddress", "no_rows"]

SCHEMA = "via int, row binary"
LEAST_ROW_BYTES = 48  # of a row with a blob: its address, the blob's header and one frame
_ROWS_AHEAD = 16  # that wait for Spark; each may be a full blob
_BATCH_BYTES = 1 << 20  # that rows of one batch may have, unless one row is larger


def no_rows(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield nothing: a task that only starts its worker, which imports what the tasks of a job need.

    It reads its input to the end, else Spark ends the worker with the task.
    """
    for _ in batches:
        pass
    yield from ()


class TaskAddress(NamedTuple):
    """The task of a subtask: its level, and its partition there."""

    level: int
    partition: int


@dataclass(frozen=True)
class ConduitTask:
    """One level of a region's attempt. Spark calls it once for each partition."""

    level: int
    subtasks: tuple[HostedSubtask, ...]  # by partition
    next_partitions: int  # partitions of the next level; 1 after the last level
    routes: dict[Destination, TaskAddress]  # by exchange and target subtask
    secret: bytes = field(repr=False)
    attempt: int
    passes_rows_on: bool  # whether rows for deeper levels come through this one

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "Spark sets it in its tasks"
        subtask = self.subtasks[context.partitionId()]
        link = connect(subtask.address, self.secret)
        try:
            link.send(dumps(Attach(subtask.id, self.attempt)))
            yield from map(_batch, gathered(self.rows(batches, link, subtask)))
        finally:
            link.close()

    def rows(self, batches: Iterable[Any], link: Link, subtask: HostedSubtask) -> Iterator[ShuffleRow | None]:
        """Feed a subtask with what arrives, and yield what leaves it or passes through, until both have ended.

        None follows a row if no other row waits.

        Raises:
            SlotLostError: The slot is gone, has failed, or refuses the task.
            Exception: What arrives cannot be read.
        """
        if self.passes_rows_on:
            yield from _Merged(self, batches, link, subtask)
        else:
            yield from self.rows_from(link, subtask, _Feeder(self, batches, link, None))

    def rows_from(self, link: Link, subtask: HostedSubtask, feeder: _Feeder) -> Iterator[ShuffleRow | None]:
        """Yield what leaves the subtask until it has finished, then wait for the feeder. None: nothing more waits."""
        try:
            while message := link.receive():
                if not is_blob(message):
                    refusal: SlotLostError = pickle.loads(message[1:])
                    raise refusal
                level, partition = self.routes[destination_of(message)]
                yield self.row(level, partition, message)
                if not link.wait(0.0):
                    yield None
        except (OSError, EOFError) as error:
            if feeder.error is not None:
                raise feeder.error from error  # it broke the connection
            raise SlotLostError(subtask.slot, str(error) or type(error).__name__) from error
        feeder.join()  # rows of others may still pass; nothing that follows is for the subtask

    def row(self, level: int, partition: int, data: bytes | memoryview) -> ShuffleRow:
        """Return a row on its way to a partition of a level, by way of the next level."""
        via = partition if level == self.level + 1 else partition % self.next_partitions
        return ShuffleRow(via, level, partition, data)


class _Feeder(threading.Thread):
    """Sends what arrives for a subtask to its slot, and puts what is for deeper levels into a queue.

    Input that cannot be read breaks the connection: a subtask without input would wait for ever.
    """

    def __init__(
        self, task: ConduitTask, batches: Iterable[Any], link: Link, onward: queue.Queue[ShuffleRow | None] | None
    ) -> None:
        super().__init__(name="conduit-feeder", daemon=True)
        self._task = task
        self._batches = batches
        self._link = link
        self._onward = onward
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._feed()
        except Exception as error:  # `rows_from` raises it on the thread of the task
            self.error = error
            self._link.shut_down()

    def _feed(self) -> None:
        task, sending = self._task, True
        for batch in self._batches:
            for value in batch.column(1) if task.level > 0 else ():
                encoded = value.as_py()
                if not encoded:
                    continue
                level, partition, data = decode(encoded)
                if level != task.level:
                    assert self._onward is not None, "the driver knows which levels pass rows on"
                    self._onward.put(task.row(level, partition, data))
                elif sending:
                    try:
                        self._link.send(data)
                    except OSError:  # `rows_from` reports that the slot is gone, or has finished
                        sending = False


class _Merged:
    """The rows that leave a subtask and those that pass through its level, in the order in which they come."""

    def __init__(self, task: ConduitTask, batches: Iterable[Any], link: Link, subtask: HostedSubtask) -> None:
        self._task = task
        self._link = link
        self._subtask = subtask
        self._rows: queue.Queue[ShuffleRow | None] = queue.Queue(_ROWS_AHEAD)
        self._error: Exception | None = None
        self._feeder = _Feeder(task, batches, link, self._rows)

    def __iter__(self) -> Iterator[ShuffleRow | None]:
        threading.Thread(target=self._take, name="conduit-taker", daemon=True).start()
        while (row := self._rows.get()) is not None:
            yield row
            if self._rows.empty():
                yield None
        if self._error is not None:
            raise self._error

    def _take(self) -> None:
        try:
            for row in self._task.rows_from(self._link, self._subtask, self._feeder):
                if row is not None:
                    self._rows.put(row)
        except Exception as error:  # raised by `__iter__` on the thread of the task
            self._error = error
        self._rows.put(None)


def gathered(rows: Iterable[ShuffleRow | None]) -> Iterator[list[ShuffleRow]]:
    """Yield rows that wait together, up to a size.

    >>> one = ShuffleRow(0, 1, 0, b"x")
    >>> [len(some) for some in gathered([one, one, None, one, None])]
    [2, 1]
    """
    some: list[ShuffleRow] = []
    size_bytes = 0
    for row in rows:
        if row is not None:
            some.append(row)
            size_bytes += len(row.data)
        if some and (row is None or size_bytes >= _BATCH_BYTES):
            yield some
            some, size_bytes = [], 0
    if some:
        yield some


def _batch(rows: list[ShuffleRow]) -> Any:
    """Return rows as Spark takes them, and the empty rows that make Spark hand them on at once.

    The columns are built from their memory: `pyarrow.array` imports pandas, half a second before the first row.
    """
    import pyarrow as pa

    ends = sorted({row.via for row in rows})
    targets = array("i", [row.via for row in rows] + ends)
    encoded = [row.encode() for row in rows]
    offsets = array("i", accumulate(map(len, encoded), initial=0))
    offsets.extend([offsets[-1]] * len(ends))
    via = pa.Array.from_buffers(pa.int32(), len(targets), [None, pa.py_buffer(targets)])
    data = pa.py_buffer(b"".join(encoded))
    row = pa.Array.from_buffers(pa.binary(), len(targets), [None, pa.py_buffer(offsets), data])
    return pa.RecordBatch.from_arrays([via, row], names=["via", "row"])
