"""`ColumnBatch`: some rows of a stream as columns of Arrow, with their timestamps and kinds.

A batch travels between subtasks as a message of Arrow IPC inside the pickle of its frame. Batches are never changed: a
new batch shares the columns that it takes over.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import astuple
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.origin import Origin, joined_origins
from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.errors import preview
from ekorn.types.row import Row, RowKind

__all__ = ["ColumnBatch", "Kinds", "Times", "joined"]

Kinds = NDArray[np.int8]
Times = NDArray[np.int64]

MOST_ROWS = 1 << 17
"""The most rows of a batch on its way."""

MOST_BYTES = 32 << 20
"""About the most bytes of a batch on its way; a batch of one row may have more."""


class ColumnBatch:
    """Rows as columns.

    Attributes:
        data: The columns.
        times: The timestamp of each row in milliseconds since the epoch; None if the rows have none.
        kinds: The number of each row's `RowKind`; None if all rows are inserted, as nearly always.
        origin: Where the rows come from, if it is known; errors name it.
    """

    __slots__ = ("data", "kinds", "origin", "times")

    def __init__(
        self,
        data: pa.RecordBatch,
        times: Times | None = None,
        kinds: Kinds | None = None,
        origin: Origin | None = None,
    ) -> None:
        assert times is None or len(times) == data.num_rows, "a timestamp for each row"
        assert kinds is None or len(kinds) == data.num_rows, "a kind for each row"
        self.data = data
        self.times = times
        self.kinds = kinds
        self.origin = origin

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows, without what a slice leaves out of its buffers."""
        return int(self.data.nbytes) + (0 if self.times is None else self.times.nbytes)

    def stamped(self, time_ms: int | None) -> ColumnBatch:
        """Return the rows with one timestamp, or without timestamps."""
        times = None if time_ms is None else np.full(len(self), time_ms, dtype=np.int64)
        return ColumnBatch(self.data, times, self.kinds, self.origin)

    def with_data(self, data: pa.RecordBatch) -> ColumnBatch:
        """Return a batch of other columns for the same rows."""
        return ColumnBatch(data, self.times, self.kinds, self.origin)

    def with_times(self, times: Times | None) -> ColumnBatch:
        """Return the rows with other timestamps."""
        return ColumnBatch(self.data, times, self.kinds, self.origin)

    def take(self, rows: NDArray[np.int64]) -> ColumnBatch:
        """Return the rows at some positions, in the order of the positions."""
        return self._chosen(self.data.take(pa.array(rows)), rows, self.origin and self.origin.some())

    def filter(self, mask: pa.BooleanArray) -> ColumnBatch:
        """Return the rows for which a mask is true."""
        data, origin = self.data.filter(mask), self.origin and self.origin.some()
        if self.times is None and self.kinds is None:
            return ColumnBatch(data, origin=origin)
        return self._chosen(data, mask.fill_null(False).to_numpy(zero_copy_only=False), origin)

    def _chosen(self, data: pa.RecordBatch, rows: Any, origin: Origin | None) -> ColumnBatch:
        times = None if self.times is None else self.times[rows]
        return ColumnBatch(data, times, None if self.kinds is None else self.kinds[rows], origin)

    def slice(self, start: int, length: int) -> ColumnBatch:
        """Return a run of rows. The columns are shared."""
        data = self.data.slice(start, length)  # which ends with the batch
        return self._chosen(data, slice(start, start + length), self.origin and self.origin.part(start, data.num_rows))

    def row(self, position: int) -> Row:
        """Return one row, as a stream of rows has it."""
        row: Row = _row_columns(self.data.schema).rows(self.data.slice(position, 1))[0]
        if self.kinds is not None:
            row.set_row_kind(RowKind(int(self.kinds[position])))
        return row

    def rows(self) -> list[Row]:
        """Return the rows, as a stream of rows has them."""
        rows: list[Row] = _row_columns(self.data.schema).rows(self.data)
        if self.kinds is not None:
            for row, kind in zip(rows, self.kinds.tolist(), strict=True):
                row.set_row_kind(RowKind(kind))
        return rows

    def only_row(self) -> Row:
        """Return the row of a batch that has one."""
        return self.row(0)

    def only_time(self) -> int | None:
        """Return the timestamp of the row of a batch that has one."""
        return None if self.times is None else int(self.times[0])

    def bounded(self) -> Iterator[ColumnBatch]:
        """Yield the rows in parts that have at most `MOST_ROWS` rows, and about `MOST_BYTES`."""
        size = self.size_bytes
        if size <= MOST_BYTES and len(self) <= MOST_ROWS:
            yield self
            return
        rows = min(MOST_ROWS, max(1, len(self) * MOST_BYTES // (size + 1)))
        for part in self.parts(rows):
            if len(part) > 1 and part.size_bytes > 2 * MOST_BYTES:  # some rows are far larger than others
                yield from part.bounded()
            else:
                yield part

    def parts(self, most_rows: int) -> Iterator[ColumnBatch]:
        """Yield the rows in runs of at most this many."""
        if len(self) <= most_rows:
            yield self
            return
        for start in range(0, len(self), most_rows):
            yield self.slice(start, most_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        times = None if self.times is None else self.times.tobytes()
        more: tuple[Any, ...] = () if self.kinds is None else (self.kinds.tobytes(),)
        if self.origin is not None:
            more = (*(more or (None,)), astuple(self.origin))
        schema = self.data.schema
        if _has_dictionaries(schema):  # dictionaries travel with their batch, in a stream of one batch
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, schema) as writer:
                writer.write_batch(self.data)
            return _from_stream, (pickle.PickleBuffer(sink.getvalue()), times, *more)
        data = pickle.PickleBuffer(self.data.serialize())  # of a slice, its own rows alone
        return _from_message, (_schema_bytes(schema), data, times, *more)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColumnBatch):
            return NotImplemented
        same = _same(self.times, other.times) and _same(self.kinds, other.kinds)
        return same and bool(self.data.equals(other.data))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        first = preview(self.data.slice(0, 1).to_pylist()[0]) if len(self) else "no rows"
        more = f", and {len(self) - 1} more" if len(self) > 1 else ""
        return f"ColumnBatch({first}{more})"


def _from_stream(data: Any, times: bytes | None, kinds: bytes | None = None, origin: Any = None) -> ColumnBatch:
    batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
    return ColumnBatch(batch, _times(times), _kinds(kinds), None if origin is None else Origin(*origin))


def _from_message(
    schema: bytes, data: Any, times: bytes | None, kinds: bytes | None = None, origin: Any = None
) -> ColumnBatch:
    batch = pa.ipc.read_record_batch(pa.py_buffer(data), _schema(schema))
    return ColumnBatch(batch, _times(times), _kinds(kinds), None if origin is None else Origin(*origin))


def _times(times: bytes | None) -> Times | None:
    return None if times is None else np.frombuffer(times, dtype=np.int64)


def _kinds(kinds: bytes | None) -> Kinds | None:
    return None if kinds is None else np.frombuffer(kinds, dtype=np.int8)


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    return one is other if one is None or other is None else bool(np.array_equal(one, other))


@lru_cache(maxsize=256)
def _row_columns(schema: pa.Schema) -> RowColumns:
    return RowColumns(row_type_of_arrow(schema))


def joined(batches: list[ColumnBatch]) -> ColumnBatch:
    """Return the rows of several batches as one; all of them have timestamps, or none has."""
    if len(batches) == 1:
        return batches[0]
    times = None if batches[0].times is None else np.concatenate([b.times for b in batches if b.times is not None])
    kinds = None
    if any(batch.kinds is not None for batch in batches):
        inserted = (np.zeros(len(batch), np.int8) if batch.kinds is None else batch.kinds for batch in batches)
        kinds = np.concatenate(list(inserted))
    origin = joined_origins([batch.origin for batch in batches])
    return ColumnBatch(pa.concat_batches([batch.data for batch in batches]), times, kinds, origin)


@lru_cache(maxsize=256)
def _schema_bytes(schema: pa.Schema) -> bytes:
    return bytes(schema.serialize())


@lru_cache(maxsize=256)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


@lru_cache(maxsize=256)
def _has_dictionaries(schema: pa.Schema) -> bool:
    return any(_is_dictionary(field.type) for field in schema)


def _is_dictionary(kind: pa.DataType) -> bool:
    nested = (kind.field(i).type for i in range(kind.num_fields))
    return bool(pa.types.is_dictionary(kind)) or any(map(_is_dictionary, nested))
