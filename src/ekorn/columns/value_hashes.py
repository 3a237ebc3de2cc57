"""The hashes of `functions/sketches.py` for all values of a column at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.functions.sketches import NAN_BITS, hash_of

__all__ = ["ValuesOfRows", "hashes_of", "plain_floats"]

Words = NDArray[np.uint64]

_WORD = 8
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD)] + [(1 << 64) - 1], dtype=np.uint64)


class ValuesOfRows:
    """The values of a column as rows have them."""

    def __init__(self, kind: pa.DataType) -> None:
        self.type = kind
        self._columns = RowColumns(row_type_of_arrow(pa.schema([("value", kind)])))

    def values(self, column: pa.Array) -> list[Any]:
        """Return the values of a column."""
        return [value for (value,) in self._columns.values([column])]

    def column(self, values: list[Any]) -> pa.Array:
        """Return values as a column."""
        found = self._columns.batch([(value,) for value in values]).column(0)
        return found if found.type == self.type else found.cast(self.type)


def hashes_of(column: pa.Array, values: ValuesOfRows) -> Words:
    """Return the hash of each value of a column without nulls."""
    t, kind = pa.types, column.type
    if t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind):
        return _hashes_of_bytes(column)
    if t.is_boolean(kind):
        return _mixed(column.cast(pa.uint8()).to_numpy().astype(np.uint64))
    if t.is_integer(kind):
        return _mixed(column.to_numpy().astype(np.int64, copy=False).view(np.uint64))
    if t.is_floating(kind):
        return _mixed(_words_of_floats(column.to_numpy().astype(np.float64, copy=False)))
    if t.is_date32(kind):
        return _mixed(column.view(pa.int32()).to_numpy().astype(np.int64).view(np.uint64))
    if t.is_timestamp(kind):
        return _mixed(column.cast(pa.timestamp("us", kind.tz)).view(pa.int64()).to_numpy().view(np.uint64))
    if t.is_time(kind):
        return _mixed(column.cast(pa.time64("us")).view(pa.int64()).to_numpy().view(np.uint64))
    return np.fromiter(map(hash_of, values.values(column)), np.uint64, len(column))


def plain_floats(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return floats with one zero and one NaN."""
    plain: NDArray[np.float64] = numbers + 0.0
    missing = np.isnan(plain)
    if missing.any():
        plain.view(np.uint64)[missing] = NAN_BITS
    return plain


def _words_of_floats(numbers: NDArray[np.float64]) -> Words:
    plain = plain_floats(numbers)
    whole = (np.abs(plain) < 2.0**63) & (plain == np.trunc(plain))
    whole |= plain == -(2.0**63)
    words = plain.view(np.uint64).copy()
    words[whole] = plain[whole].astype(np.int64).view(np.uint64)
    return words


def _mixed(words: Words) -> Words:
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _hashes_of_bytes(column: pa.Array) -> Words:
    if not len(column):
        return np.empty(0, dtype=np.uint64)
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64 if wide else np.int32)
    offsets = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros(end - first + _WORD, dtype=np.uint8)  # a word may begin at any byte, also at the last one
    if end > first:
        data[: end - first] = np.frombuffer(data_buffer, dtype=np.uint8)[first:end]
    at_any_byte: Words = np.ndarray(shape=(end - first + 1,), dtype="<u8", buffer=data, strides=(1,))
    starts, lengths = offsets[:-1] - first, np.diff(offsets)
    hashes = _mixed(lengths.astype(np.uint64))
    more = np.arange(len(column))
    for position in range(0, int(lengths.max()), _WORD):
        more = more[lengths[more] > position]
        words = at_any_byte[starts[more] + position]
        words &= _MASKS.take(np.minimum(lengths[more] - position, _WORD))
        hashes[more] = _mixed(hashes[more] ^ words)
    return hashes
