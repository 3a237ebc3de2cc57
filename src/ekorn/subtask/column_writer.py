"""The sending side of an exchange of columns: batches are divided, cut to the size of a blob, and joined."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.columns.column_batch import ColumnBatch, joined
from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.columns.partitioning import KeyRoutes, divided
from ekorn.errors import InvalidProgramError, preview
from ekorn.functions.record_functions import FieldKeySelector, Partitioner
from ekorn.graph.job_graph import Vertex
from ekorn.graph.specs import Broadcast, Custom, Forward, Global, Hash, Rebalance, Rescale, Shipped, Shuffle
from ekorn.subtask.exchange_writer import ExchangeWriter, OutputChannel, Router
from ekorn.subtask.wire.frames import Blob

_ROWS_OF_A_SHARE = 4096  # a batch is divided among all receivers if each gets this many rows
_JOINED_ROWS = 1 << 17  # batches that wait are joined up to this many rows


class ColumnWriter(ExchangeWriter):
    """Sends batches. A blob leaves when its batches fill it, or when the subtask has nothing else to do."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for channel in self.channels:
            channel.full_run = 1 << 30  # counted in bytes instead
        self._held = dict.fromkeys((channel.target for channel in self.channels), 0)

    def add(self, channel: OutputChannel, batch: ColumnBatch) -> None:
        """Add a batch to a channel, cut into parts that fit a blob."""
        size = batch.size_bytes
        self._held[channel.target] += size
        if size <= self._blob_bytes or len(batch) == 1:
            channel.values.append(batch)
            return
        rows = max(1, len(batch) * self._blob_bytes // (size + 1))
        for part in batch.parts(rows):
            if len(part) > 1 and part.size_bytes > 2 * self._blob_bytes:  # some rows are far larger than others
                self._held[channel.target] -= part.size_bytes
                self.add(channel, part)
            else:
                channel.values.append(part)

    def take_full(self) -> Iterator[Blob]:
        for channel in self.channels:
            if self._held[channel.target] >= self._blob_bytes // 8:
                yield from self._take(channel)

    def sample(self) -> int:
        return 1

    def held_bytes(self) -> float:
        return sum(self._held.values())

    def _take(self, channel: OutputChannel) -> Iterator[Blob]:
        self._held[channel.target] = 0
        for blob in super()._take(channel):
            channel.full_run = 1 << 30
            yield blob

    def _close_run(self, channel: OutputChannel) -> None:
        if len(channel.values) > 1:
            channel.values[:] = _merged(channel.values)
        super()._close_run(channel)


def _merged(batches: list[ColumnBatch]) -> list[ColumnBatch]:
    """Return batches of the same rows, joined where they are short: receivers pay for each batch."""
    merged: list[ColumnBatch] = []
    waiting: list[ColumnBatch] = []
    rows = 0
    for batch in batches:
        fits = not waiting or (
            rows + len(batch) <= _JOINED_ROWS
            and (batch.times is None) == (waiting[0].times is None)
            and batch.data.schema.equals(waiting[0].data.schema)
        )
        if not fits:
            merged.append(joined(waiting))
            waiting, rows = [], 0
        waiting.append(batch)
        rows += len(batch)
    merged.append(joined(waiting))
    return merged


class ColumnRouter(Router):
    """Divides each batch among the channels of an exchange."""

    def __init__(self, writer: ExchangeWriter, target: Vertex, seed: int) -> None:
        super().__init__(writer, target, seed)
        assert isinstance(writer, ColumnWriter)
        self._writer = writer
        self._channels = writer.channels
        self._by_target = {channel.target: channel for channel in writer.channels}
        self._random = np.random.default_rng(seed)
        self._next = itertools.cycle(range(len(self._channels)))
        partitioning = writer.exchange.partitioning
        if isinstance(partitioning, Rebalance):
            for _ in range(writer.sender % max(1, len(self._channels))):
                next(self._next)
        self._send = self._sender()

    def send_columns(self, batch: ColumnBatch) -> None:
        self._send(batch)

    def _sender(self) -> Callable[[ColumnBatch], None]:
        match self._writer.exchange.partitioning:
            case Forward() | Global():
                return lambda batch: self._writer.add(self._channels[0], batch)
            case Rebalance() | Rescale():
                return self._send_in_turn
            case Shuffle():
                return self._send_shuffled
            case Broadcast():
                return self._send_to_all
            case Hash(key):
                assert isinstance(key.selector, FieldKeySelector), "the program keys columns by their names"
                self._key_names = [str(field) for field in key.selector.fields]
                self._routes = self._key_routes()
                return self._send_by_key
            case Custom(partitioner, key):
                self._partition = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
                self._key_names = [key.selector.field]
                return self._send_by_partitioner
            case Shipped():
                raise AssertionError("the records of DataSet programs pass Spark's shuffle")

    def _key_routes(self) -> KeyRoutes:
        type_info = self._writer.exchange.type_info
        assert isinstance(type_info, ColumnsTypeInfo)
        schema = pa.schema([type_info.schema.field(name) for name in self._key_names])
        return KeyRoutes(schema, max_parallelism=self._target.max_parallelism, parallelism=self._target.parallelism)

    def _send_by_key(self, batch: ColumnBatch) -> None:
        if len(self._channels) == 1:
            self._writer.add(self._channels[0], batch)
            return
        targets = self._routes.targets([batch.data.column(name) for name in self._key_names])
        self._send_divided(batch, targets)

    def _send_divided(self, batch: ColumnBatch, targets: Any) -> None:
        for target, part in divided(batch, targets, len(self._channels)):
            self._writer.add(self._channels[target], part)

    def _send_by_partitioner(self, batch: ColumnBatch) -> None:
        self._send_divided(batch, self.choose_for_columns(batch))

    def choose_for_columns(self, batch: ColumnBatch) -> Any:
        count = len(self._channels)
        found = self._partition(batch.data.column(self._key_names[0]), count)
        targets = np.asarray(found.to_numpy(zero_copy_only=False) if isinstance(found, pa.Array) else found)
        if targets.shape != (len(batch),) or targets.dtype.kind not in "iu":
            raise InvalidProgramError(
                f"the partitioner returned {preview(found, 80)} for {len(batch)} rows; on a stream of columns it must "
                "return an array with an int for each row"
            )
        if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < count:
            wrong = targets[(targets < 0) | (targets >= count)][0]
            raise InvalidProgramError(f"the partitioner returned {wrong}; it must return ints from 0 to {count - 1}")
        return targets

    def _send_in_turn(self, batch: ColumnBatch) -> None:
        count = len(self._channels)
        if len(batch) < count * _ROWS_OF_A_SHARE:
            self._writer.add(self._channels[next(self._next)], batch)
            return
        for part in batch.parts(-(-len(batch) // count)):
            self._writer.add(self._channels[next(self._next)], part)

    def _send_shuffled(self, batch: ColumnBatch) -> None:
        self._send_divided(batch, self._random.integers(len(self._channels), size=len(batch)))

    def _send_to_all(self, batch: ColumnBatch) -> None:
        for channel in self._channels:
            self._writer.add(channel, batch)
