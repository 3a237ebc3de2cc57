"""Runs in Spark's Python workers for as long as an attempt lasts: carries blobs between Spark's shuffle and a slot.

A subtask has a task for each direction. An outlet task takes the blobs that leave the subtask, and writes each as a row
with the partition of its target. An inlet task reads rows, and sends their blobs to the subtask. So Spark never has to
read from a Python worker and write to it at the same time. Nothing here looks inside a blob. See
docs/decisions/0049-pipelined-rdds.md.

Spark passes rows to a Python worker when its buffer is full, so a row has at least as many bytes as that buffer. The
classes that write and read rows have the methods that PySpark calls of a serializer.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from ekorn.engine.spark.task_side.level_task import HostedSubtask
from ekorn.errors import SlotLostError
from ekorn.links.link import Link, connect
from ekorn.slot_protocol.task_messages import Attach, Carries
from ekorn.subtask.wire.frames import Destination, destination_of, is_blob
from ekorn.types.by_value import dumps

__all__ = ["CarriedBlob", "InletRows", "InletTask", "NoRows", "OutletRows", "OutletTask", "no_rows"]

_HEAD = struct.Struct("!iqii")  # length of the key, the key, length of the row; the row begins with that of its blob
_LENGTH = struct.Struct("!i")
_KEY_BYTES = 8
_END_OF_ROWS = -1  # PySpark calls it END_OF_DATA_SECTION


class CarriedBlob(NamedTuple):
    """A blob on its way to the task that brings it to its subtask."""

    partition: int
    data: bytes


@dataclass(frozen=True)
class OutletTask:
    """Takes what leaves the subtasks of some vertices. Spark calls it once for each partition."""

    subtasks: tuple[HostedSubtask, ...]  # by partition
    routes: dict[Destination, int]  # partitions of the inlet tasks, by exchange and target subtask
    secret: bytes = field(repr=False)
    attempt: int

    def __call__(self, partition: int, unused: Iterable[object]) -> Iterator[CarriedBlob | None]:
        """Yield what leaves the subtask until it has finished. None: nothing more waits to leave.

        Raises:
            SlotLostError: The slot is gone, has failed, or refuses the task.
        """
        for _ in unused:  # else Spark ends the worker with the task
            pass
        subtask = self.subtasks[partition]
        link = _attached(subtask, self.secret, self.attempt, Carries.OUTPUT)
        try:
            yield from self.taken_from(link, subtask)
        finally:
            link.close()

    def taken_from(self, link: Link, subtask: HostedSubtask) -> Iterator[CarriedBlob | None]:
        """Yield what comes from a slot, as `__call__` does."""
        try:
            while message := link.receive():
                if not is_blob(message):
                    raise _refusal(message)
                yield CarriedBlob(self.routes[destination_of(message)], message)
                if not link.wait(0.0):
                    yield None
        except (OSError, EOFError) as error:
            raise SlotLostError(subtask.slot, str(error) or type(error).__name__) from error


@dataclass(frozen=True)
class InletTask:
    """Brings what arrives to the subtasks of some vertices. Spark calls it once for each partition."""

    subtasks: tuple[HostedSubtask, ...]  # by partition
    secret: bytes = field(repr=False)
    attempt: int

    def __call__(self, partition: int, blobs: Iterable[memoryview]) -> Iterator[bytes]:
        """Send blobs to the subtask until Spark has no more, and the subtask needs none. Yields nothing.

        Raises:
            SlotLostError: The slot is gone, has failed, or refuses the task.
        """
        subtask = self.subtasks[partition]
        link = _attached(subtask, self.secret, self.attempt, Carries.INPUT)
        try:
            self.bring_to(link, subtask, blobs)
        finally:
            link.close()  # if the input could not be read, this tells the slot: the subtask would wait for ever
        yield from ()

    def bring_to(self, link: Link, subtask: HostedSubtask, blobs: Iterable[memoryview]) -> None:
        """Send blobs to a slot, as `__call__` does."""
        broken: OSError | None = None
        for blob in blobs:
            try:
                link.send(blob)
            except OSError as error:
                broken = error
                break
        try:
            message = link.receive()  # the input ends a moment before the slot hears of the job's end
        except (OSError, EOFError) as error:
            why = broken or error
            raise SlotLostError(subtask.slot, str(why) or type(why).__name__) from why
        if message:
            raise _refusal(message)


def _attached(subtask: HostedSubtask, secret: bytes, attempt: int, carries: Carries) -> Link:
    try:
        link = connect(subtask.address, secret)
        link.send(dumps(Attach(subtask.id, attempt, carries)))
    except (OSError, EOFError) as error:
        raise SlotLostError(subtask.slot, str(error) or type(error).__name__) from error
    return link


def _refusal(message: bytes) -> SlotLostError:
    refusal: SlotLostError = pickle.loads(message[1:])
    return refusal


class NoRows:
    """The serializer of a task that yields no rows: runs it to its end."""

    def dump_stream(self, iterator: Iterable[CarriedBlob | None], stream: BinaryIO) -> None:
        with _told_to_spark(stream):
            self._write(iterator, stream)

    def load_stream(self, stream: BinaryIO) -> Iterator[bytes]:
        return iter(())

    def _write(self, iterator: Iterable[CarriedBlob | None], stream: BinaryIO) -> None:
        for _ in iterator:
            raise AssertionError("a subtask without outputs has put out a blob")


class OutletRows(NoRows):
    """Writes blobs to Spark, as its `PairwiseRDD` reads them: the key of a row, which is its partition, and the row.

    Args:
        least_bytes: The least size of a row. A row is its blob's length, its blob, and zeros.
    """

    def __init__(self, least_bytes: int) -> None:
        self._least_bytes = least_bytes

    def _write(self, iterator: Iterable[CarriedBlob | None], stream: BinaryIO) -> None:
        for carried in iterator:
            if carried is None:
                stream.flush()
                continue
            blob = carried.data
            padding = max(0, self._least_bytes - _LENGTH.size - len(blob))
            row_bytes = _LENGTH.size + len(blob) + padding
            stream.write(_HEAD.pack(_KEY_BYTES, carried.partition, row_bytes, len(blob)))
            stream.write(blob)
            if padding:
                stream.write(bytes(padding))


@contextmanager
def _told_to_spark(stream: BinaryIO) -> Iterator[None]:
    """Let an exception end the task; if Spark has cancelled the task meanwhile, end the process at once.

    PySpark would try to report the exception to Spark, and print that this fails.
    """
    try:
        yield
    except Exception:
        connection = select.poll()
        connection.register(stream.fileno(), select.POLLRDHUP)  # TCP tells of the end of a connection on request alone
        if connection.poll(0):
            os._exit(1)
        raise


class InletRows:
    """Reads the blobs that `OutletRows` has written, as Spark passes rows to Python. Empty rows are left out."""

    def load_stream(self, stream: BinaryIO) -> Iterator[memoryview]:
        while (length := self._length(stream)) != _END_OF_ROWS:
            row = stream.read(length)
            if len(row) < length:
                raise EOFError("Spark closed the connection")
            if row:
                (blob_bytes,) = _LENGTH.unpack_from(row)
                yield memoryview(row)[_LENGTH.size : _LENGTH.size + blob_bytes]

    def _length(self, stream: BinaryIO) -> int:
        read = stream.read(_LENGTH.size)
        if len(read) < _LENGTH.size:
            raise EOFError("Spark closed the connection")
        return int(_LENGTH.unpack(read)[0])


def no_rows(rows: Iterable[object]) -> Iterator[bytes]:
    """Yield nothing: a task that only starts its worker, which imports what the tasks of a job need.

    It reads its input to the end, else Spark ends the worker with the task.
    """
    for _ in rows:
        pass
    yield from ()
