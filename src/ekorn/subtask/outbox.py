"""The output of a subtask: one channel per exchange and target subtask, cut into blobs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from ekorn.columns.columns_type import has_columns
from ekorn.graph.channels import targets_of
from ekorn.graph.job_graph import Exchange, JobGraph, Vertex
from ekorn.operators.epoch import OutputPart
from ekorn.operators.sinks.driver_output import DriverOutput
from ekorn.subtask.exchange_writer import ExchangeWriter, Router
from ekorn.subtask.wire.frames import END, Blob, Frame

_GROWTH = 4  # the number of results between two looks grows at most this much
_FIRST_AT_ONCE = 8  # results before the first look at the channels
_MOST_AT_ONCE = 256  # results between two looks


class Taken(NamedTuple):
    """The records and the bytes that have left an outbox."""

    records: int
    size_bytes: int


Emitted: TypeAlias = Blob | OutputPart
"""What leaves a subtask: blobs to other subtasks, and output for the driver."""


class Outbox:
    """The sending side of all exchanges of one subtask, and of its output for the driver.

    `send` takes a blob that leaves while records are still being emitted. In a slot it writes to the connection, and a
    connection that takes no more bytes stops the subtask. Elsewhere the blob waits for `take_full`.
    """

    def __init__(
        self, graph: JobGraph, vertex: Vertex, index: int, driver_output: DriverOutput, *, blob_bytes: int
    ) -> None:
        self.writers = {
            e.id: writer_of(e)(
                e,
                targets_of(e, vertex, graph.vertices[e.target], index),
                sender=index,
                blob_bytes=blob_bytes,
                max_record_bytes=graph.settings.max_record_bytes,
            )
            for e in graph.outputs_of(vertex.id)
        }
        self.blob_bytes = blob_bytes
        channels = sum(len(writer.channels) for writer in self.writers.values())
        self._most_at_once = max(_MOST_AT_ONCE, 4 * channels)  # a look visits every channel
        self._at_once = _FIRST_AT_ONCE
        # A failure to send ends this iterator for good, and an operator that skips records may take the error for the
        # fault of one. The epoch must fail all the same: the error is raised again when the outbox is used next.
        self._failure: BaseException | None = None
        self.relief: Iterator[bool] = itertools.chain.from_iterable(self._reliefs())
        self._driver_output = driver_output
        self._waiting: list[Emitted] = []
        self.send: Callable[[Emitted], None] = self._waiting.append

    @property
    def has_output(self) -> bool:
        """Whether anything can leave through this outbox: a chain may end in sinks of its own."""
        return bool(self.writers) or self._driver_output.is_used

    def routers(self, graph: JobGraph, seed: int) -> dict[int, Router]:
        """Return a router for every exchange, by its id."""
        return {
            number: router_of(writer)(writer, graph.vertices[writer.exchange.target], seed + number)
            for number, writer in self.writers.items()
        }

    def take_full(self) -> Iterator[Emitted]:
        """Yield the blobs of channels that are full."""
        yield from self._take_waiting()
        yield from self._take_full()

    def _take_full(self) -> Iterator[Emitted]:
        self._raise_failure()
        for writer in self.writers.values():
            yield from writer.take_full()
        yield from self._driver_output.take_full()

    def _reliefs(self) -> Iterator[Iterator[bool]]:
        """Yield runs of True, as long as the number of results until the next look at the channels."""
        while True:
            yield itertools.repeat(True, self._at_once)
            try:
                self.relieve()
            except BaseException as error:
                self._failure = error
                raise

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def relieve(self) -> None:
        """Send the blobs of channels that are full. Called while records are being emitted."""
        at_once = min(self._most_at_once, self._driver_output.sample())
        for writer in self.writers.values():
            at_once = min(at_once, writer.sample())
        for item in self._take_full():
            self.send(item)
        self._at_once = min(at_once, self._at_once * _GROWTH)

    def held_bytes(self) -> float:
        """Return an estimate of the bytes that have not left yet."""
        return sum(writer.held_bytes() for writer in self.writers.values()) + self._driver_output.held_bytes()

    def _take_waiting(self) -> Iterator[Emitted]:
        while self._waiting:
            yield self._waiting.pop(0)

    def flush(self) -> Iterator[Emitted]:
        """Yield all remaining blobs, at the end of an epoch."""
        yield from self.take_all()
        for writer in self.writers.values():
            writer.restart()

    def take_all(self) -> Iterator[Emitted]:
        """Yield all remaining blobs."""
        self._raise_failure()
        yield from self._take_waiting()
        yield from self._driver_output.take_full()
        for writer in self.writers.values():
            yield from writer.take_all()

    def taken(self) -> Taken:
        """Return what has left since the last call."""
        records = bytes_taken = 0
        for writer in self.writers.values():
            records += writer.records_taken
            bytes_taken += writer.bytes_taken
            writer.records_taken = writer.bytes_taken = 0
        return Taken(records, bytes_taken)

    def mark(self, frame: Frame) -> None:
        """Send a frame over all exchanges."""
        for writer in self.writers.values():
            writer.broadcast(frame)

    def end(self, *, is_drained: bool) -> None:
        """Send END over all exchanges: no record follows."""
        self.mark((END, is_drained))


def writer_of(exchange: Exchange) -> type[ExchangeWriter]:
    """Return the class of the sending side of an exchange."""
    if not has_columns(exchange.type_info):
        return ExchangeWriter
    from ekorn.subtask.column_writer import ColumnWriter  # which loads PyArrow

    return ColumnWriter


def router_of(writer: ExchangeWriter) -> type[Router]:
    """Return the class of what finds channels for an exchange."""
    if not has_columns(writer.exchange.type_info):
        return Router
    from ekorn.subtask.column_writer import ColumnRouter

    return ColumnRouter
