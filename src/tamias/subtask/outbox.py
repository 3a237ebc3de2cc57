"""The output of a subtask: one channel per exchange and target subtask, cut into blobs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from tamias.codegen.exchange_code import Append
from tamias.errors import InvalidProgramError, RecordTypeError
from tamias.graph.channels import targets_of
from tamias.graph.job_graph import Exchange, JobGraph, Vertex
from tamias.graph.specs import Rebalance, Rescale, Shuffle
from tamias.keygroups import key_group, subtask_of
from tamias.subtask.wire.frames import END, RECORDS, Blob, Frame
from tamias.types.by_value import dumps

FULL_RUN = 8192  # records that fill a blob
_ROUTES_KEPT = 1 << 17  # keys whose channel is remembered: some 10 MB


class OutputChannel:
    """The open run of records to one target subtask.

    `values` and `times` are the same two lists for as long as the channel exists, because the generated loops keep
    their `append` methods.
    """

    __slots__ = ("frames", "sequence", "target", "times", "values")

    def __init__(self, target: int) -> None:
        self.target = target
        self.values: list[Any] = []
        self.times: list[int | None] = []
        self.frames: list[Frame] = []
        self.sequence = 0


class ExchangeWriter:
    """The sending side of one exchange in one subtask."""

    def __init__(self, exchange: Exchange, targets: list[int], *, sender: int) -> None:
        self.exchange = exchange
        self.sender = sender
        self.channels = [OutputChannel(t) for t in targets]
        self.timed = False
        self.bytes_taken = self.records_taken = 0
        self.conform = exchange.type_info.conform if exchange.type_info is not None else None

    def set_timed(self, timed: bool) -> None:
        """State whether the records that follow have timestamps. All or none of a run's records have."""
        if timed is not self.timed:
            for channel in self.channels:
                self._close_run(channel)
            self.timed = timed

    def broadcast(self, frame: Frame) -> None:
        """Add a frame behind the records sent so far, on every channel."""
        for channel in self.channels:
            self._close_run(channel)
            channel.frames.append(frame)

    def take(self, least: int) -> Iterator[Blob]:
        """Yield the blobs of channels with at least `least` records; 0: of channels with any frame."""
        for channel in self.channels:
            if len(channel.values) >= least:
                self._close_run(channel)
                if channel.frames:
                    blob = Blob(self.exchange.id, self.sender, channel.target, channel.sequence, dumps(channel.frames))
                    channel.sequence += 1
                    channel.frames = []
                    self.bytes_taken += blob.size_bytes
                    yield blob

    def restart(self) -> None:
        """Number blobs from 0 again, for a new epoch."""
        for channel in self.channels:
            channel.sequence = 0

    def _close_run(self, channel: OutputChannel) -> None:
        if channel.values:
            values = channel.values.copy()
            if self.conform is not None:
                try:
                    values = self.conform(values)
                except RecordTypeError as misfit:
                    misfit.emitted_by = self.exchange.source_operator
                    raise
            self.records_taken += len(values)
            times = channel.times.copy() if self.timed else None
            channel.frames.append((RECORDS, values, times))
            channel.values.clear()
            channel.times.clear()


class Outbox:
    """The sending side of all exchanges of one subtask."""

    def __init__(self, graph: JobGraph, vertex: Vertex, index: int) -> None:
        self.writers = {
            e.id: ExchangeWriter(e, targets_of(e, vertex, graph.vertices[e.target], index), sender=index)
            for e in graph.outputs_of(vertex.id)
        }

    def routers(self, graph: JobGraph, seed: int) -> dict[int, Router]:
        """Return a router for every exchange, by its id."""
        return {
            number: Router(writer, graph.vertices[writer.exchange.target], seed + number)
            for number, writer in self.writers.items()
        }

    def take_full(self) -> Iterator[Blob]:
        """Yield the blobs of channels that are full."""
        for writer in self.writers.values():
            yield from writer.take(FULL_RUN)

    def flush(self) -> Iterator[Blob]:
        """Yield all remaining blobs, at the end of an epoch."""
        for writer in self.writers.values():
            yield from writer.take(0)
            writer.restart()

    def taken(self) -> tuple[int, int]:
        """Return how many records and how many bytes have left since the last call."""
        records = bytes_taken = 0
        for writer in self.writers.values():
            records += writer.records_taken
            bytes_taken += writer.bytes_taken
            writer.records_taken = writer.bytes_taken = 0
        return records, bytes_taken

    def mark(self, frame: Frame) -> None:
        """Send a frame over all exchanges."""
        for writer in self.writers.values():
            writer.broadcast(frame)

    def end(self) -> None:
        """Send END over all exchanges: no frame follows."""
        self.mark((END,))


class Router:
    """Finds the channel for a record of one exchange. Used by the generated loops."""

    def __init__(self, writer: ExchangeWriter, target: Vertex, seed: int) -> None:
        self.writer = writer
        self.appends: list[Append] = [(c.values.append, c.times.append) for c in writer.channels]
        self._target = target
        partitioning = writer.exchange.partitioning
        match partitioning:
            case Rebalance() | Rescale():
                first = writer.sender % len(self.appends) if isinstance(partitioning, Rebalance) else 0
                self.next = itertools.islice(itertools.cycle(self.appends), first, None).__next__
            case Shuffle():
                choice = random.Random(seed).choice
                self.next = lambda: choice(self.appends)
            case _:
                pass
        self.routes: dict[Any, Append] = {}

    def resolve(self, key: Any) -> Append:
        """Return the channel of a key that is not remembered, and remember it."""
        target = self._target
        group = key_group(key, target.max_parallelism)
        found = self.appends[subtask_of(group, target.max_parallelism, target.parallelism)]
        if len(self.routes) >= _ROUTES_KEPT:
            self.routes.clear()
        self.routes[key] = found
        return found

    def custom(self, index: Any) -> Append:
        """Return the channel of the index that a user's partitioner returned."""
        if type(index) is not int or not 0 <= index < len(self.appends):
            raise InvalidProgramError(
                f"the partitioner returned {index!r}; it must return an int from 0 to {len(self.appends) - 1}"
            )
        return self.appends[index]
