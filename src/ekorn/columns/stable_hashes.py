"""The stable hashes of `keygroups.py`, for all keys of a batch at once.

A text is hashed by CRC-32, eight bytes at a time: eight tables have the remainder of each byte, shifted by the bytes
behind it. Values of types that are rare as keys are hashed one by one, each distinct value once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Grown, Rows, TextWords, Words
from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.keygroups import stable_hash

__all__ = ["hasher_of", "hashes_of_tuples", "key_groups_of_hashes"]

Hasher = Callable[[pa.Array], Words]
"""Returns the hash of each value of a column; 0 for a null, as in a tuple."""

_WORD = 8
_ONES = np.uint64(0xFFFFFFFF)
_REFLECTED = 0xEDB88320  # the polynomial of CRC-32
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_MODULUS = (1 << 61) - 1  # of Python's hash of numbers
_REMEMBERED = 1 << 18  # values of other types whose hashes are remembered: some 20 MB


@cache
def _tables() -> NDArray[np.uint64]:
    """Return for each byte its remainder with no byte behind it, with one, and so on up to seven."""
    tables = np.zeros((_WORD, 256), dtype=np.uint64)
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (_REFLECTED if rest & 1 else 0)
        tables[0, byte] = rest
    for behind in range(1, _WORD):
        before = tables[behind - 1]
        tables[behind] = (before >> np.uint64(8)) ^ tables[0].take(before & np.uint64(0xFF))
    return tables


def _after_word(words: Words) -> Words:  # hot
    """Return the remainders of words of eight bytes, the first byte in the lowest bits."""
    octets, tables = np.ascontiguousarray(words).view(np.uint8).reshape(-1, _WORD), _tables()
    rest: Words = tables[_WORD - 1].take(octets[:, 0])
    for at in range(1, _WORD):
        rest ^= tables[_WORD - 1 - at].take(octets[:, at])
    return rest


def _hashes_of_texts(column: pa.Array) -> Words:
    texts = TextWords(column)
    rests = np.full(len(texts), _ONES, dtype=np.uint64)
    for position in range(0, texts.longest, _WORD):
        if texts.shortest >= position + _WORD:
            rests = _after_word(rests ^ texts.words(None, position))
            continue
        more = None if texts.shortest > position else np.flatnonzero(texts.lengths > position)
        before = rests if more is None else rests[more]
        lengths = texts.lengths if more is None else texts.lengths[more]
        bits = (np.minimum(lengths - position, _WORD) * 8).astype(np.uint64)
        unused = np.uint64(64) - bits
        # The bytes of the last word go to its end, behind zeros, which leave the remainder 0 as it is.
        after = _after_word((before ^ texts.words(more, position)) << unused) ^ (before >> bits)
        if more is None:
            rests = after
        else:
            rests[more] = after
    return _without_nulls(rests ^ _ONES, texts.valid)


def _hashes_of_whole_numbers(column: pa.Array) -> Words:
    valid = None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)
    if valid is not None:
        column = column.fill_null(pa.scalar(False if pa.types.is_boolean(column.type) else 0, column.type))
    numbers = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    hashes = numbers
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < _MODULUS:
        hashes = np.remainder(numbers, _MODULUS)
        # Python's hash of a number has its sign, and is -2 where it would be -1, which means an error in C.
        hashes[(numbers < 0) & (hashes == _MODULUS - 1)] -= 1
    return _without_nulls(hashes.view(np.uint64), valid)


def _without_nulls(hashes: Words, valid: NDArray[np.bool_] | None) -> Words:
    return hashes if valid is None else np.where(valid, hashes, np.uint64(0))


class _Remembered:
    """The hashes of values of other types: dates, points in time, floats, decimals, nested values."""

    def __init__(self, field: pa.Field) -> None:
        self._type = field.type
        self._columns = RowColumns(row_type_of_arrow(pa.schema([field])))
        self._forget()

    def _forget(self) -> None:
        self._index = KeyIndex([self._type])
        self._hashes = Grown(np.uint64)

    def __call__(self, column: pa.Array) -> Words:
        if len(self._index) > _REMEMBERED:
            self._forget()
        rows = self._index.rows([column])
        known = self._hashes.length
        if known < len(self._index):
            new: Rows = np.arange(known, len(self._index))
            values = self._columns.values(self._index.columns(new))
            hashes = [0 if value is None else stable_hash(value) for (value,) in values]
            self._hashes.extend(np.array(hashes, dtype=np.uint64))
        found: Words = self._hashes.values.take(rows)
        return found


def hasher_of(field: pa.Field) -> Hasher:
    """Return the function that hashes the values of a key column."""
    t, kind = pa.types, field.type
    if t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind):
        return _hashes_of_texts
    if t.is_signed_integer(kind) or t.is_boolean(kind):
        return _hashes_of_whole_numbers
    return _Remembered(field)


def hashes_of_tuples(fields: Sequence[Words]) -> Words:
    """Return the hashes of tuples, by the hashes of their fields."""
    rests = np.full(len(fields[0]), int(_ONES) ^ 1, dtype=np.uint64)
    for hashes in fields:
        rests = _after_word(rests ^ hashes.byteswap())
    return rests ^ _ONES


def key_groups_of_hashes(hashes: Words, max_parallelism: int) -> NDArray[np.int64]:
    """Return the key groups of keys with some hashes: `mixed` of `keygroups.py`, and the remainder."""
    once = (hashes ^ (hashes >> _HALF)) * _MULTIPLIER
    twice = ((once ^ (once >> _HALF)) * _MULTIPLIER) >> _HALF
    groups: NDArray[np.int64] = (twice % np.uint64(max_parallelism)).astype(np.int64)
    return groups
