"""The words of keys: each kind of key column as numbers of 64 bits, by which keys are hashed and compared at once.

A `KeyStore` keeps the distinct keys of one column, numbered from 0. It compares a batch of keys with kept keys without
making a Python object of any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["FixedStore", "KeyColumn", "KeyStore", "TextStore", "TextWords", "Words", "mixed_words", "store_for"]

Words = NDArray[np.uint64]
Rows = NDArray[np.int64]

_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_WORD = 8
_KEPT_BYTES = 32  # the words of so many bytes of each text are kept once they were read
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD)] + [(1 << 64) - 1], dtype=np.uint64)
_NULL = np.uint64(0x9E3779B97F4A7C15)  # the hash of a null; equality looks at the validity
_NAN = np.uint64(0x7FF8000000000000)


def mixed_words(words: Words) -> Words:
    """Return numbers each of whose bits depends on every bit of a word."""
    once = (words ^ (words >> _HALF)) * _MULTIPLIER
    return once ^ (once >> _HALF)


class KeyColumn(Protocol):
    """One key column of a batch, prepared for hashing and comparing."""

    hashes: Words

    def __len__(self) -> int: ...


class KeyStore(ABC):
    """The kept keys of one column."""

    @abstractmethod
    def prepare(self, column: pa.Array) -> Any:
        """Return a column of a batch, prepared for the other methods."""

    @abstractmethod
    def equal(self, column: Any, at: Rows | None, kept: Rows) -> NDArray[np.bool_]:
        """Return for each pair whether key `at[i]` of a column equals the kept key number `kept[i]`.

        Without `at` it is key `i` of the column.
        """

    @abstractmethod
    def append(self, column: Any, at: Rows) -> None:
        """Keep the keys at some positions of a column, in order."""

    @abstractmethod
    def to_arrow(self, keys: Rows | None = None) -> pa.Array:
        """Return the kept keys with some numbers, or all of them in the order of their numbers."""

    @abstractmethod
    def truncate(self, count: int) -> None:
        """Keep the first keys, so many. Called before a frozen copy has any of the others."""

    @abstractmethod
    def frozen(self) -> KeyStore:
        """Return the keys kept so far, for another thread. Kept keys are never changed, so nothing is copied."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """The memory that the kept keys take."""


class Grown:
    """A vector that grows at its end."""

    __slots__ = ("_buffer", "length")

    def __init__(self, dtype: Any) -> None:
        self._buffer: NDArray[Any] = np.empty(64, dtype=dtype)
        self.length = 0

    @property
    def values(self) -> NDArray[Any]:
        return self._buffer[: self.length]

    def frozen(self) -> Grown:
        """Return the elements so far. They share their memory with this vector, which only appends to it."""
        copy = Grown.__new__(Grown)
        copy._buffer, copy.length = self._buffer, self.length
        return copy

    def truncate(self, length: int) -> None:
        """Forget the elements at the end, and keep so many."""
        self.length = min(self.length, length)

    @property
    def size_bytes(self) -> int:
        return self._buffer.nbytes

    def extend(self, more: NDArray[Any]) -> None:
        end = self.length + len(more)
        if end > len(self._buffer):
            grown = np.empty(max(end, len(self._buffer) * 9 // 8), dtype=self._buffer.dtype)
            grown[: self.length] = self.values
            self._buffer = grown
        self._buffer[self.length : end] = more
        self.length = end


class _FixedColumn:
    __slots__ = ("hashes", "valid", "words")

    def __init__(self, words: Words, valid: NDArray[np.bool_] | None) -> None:
        self.words = words
        self.valid = valid
        self.hashes = mixed_words(words)
        if valid is not None:
            self.hashes = np.where(valid, self.hashes, _NULL)

    def __len__(self) -> int:
        return len(self.words)


class FixedStore(KeyStore):
    """Keys of at most 64 bits: numbers, booleans, dates, times and timestamps."""

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._type = arrow_type
        self._words = Grown(np.uint64)
        self._valid: Grown | None = None  # once a null was kept

    def prepare(self, column: pa.Array) -> _FixedColumn:
        valid = None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)
        return _FixedColumn(words_of(column), valid)

    def equal(self, column: _FixedColumn, at: Rows | None, kept: Rows) -> NDArray[np.bool_]:
        words = column.words if at is None else column.words.take(at)
        same: NDArray[np.bool_] = words == self._words.values.take(kept)
        if column.valid is not None or self._valid is not None:
            valid: Any = True if column.valid is None else column.valid if at is None else column.valid[at]
            was_valid = True if self._valid is None else self._valid.values[kept]
            same &= valid == was_valid
        return same

    def append(self, column: _FixedColumn, at: Rows) -> None:
        if column.valid is not None and self._valid is None and not column.valid[at].all():
            self._valid = Grown(np.bool_)
            self._valid.extend(np.ones(self._words.length, dtype=np.bool_))
        if self._valid is not None:
            self._valid.extend(np.ones(len(at), dtype=np.bool_) if column.valid is None else column.valid[at])
        self._words.extend(column.words[at])

    def to_arrow(self, keys: Rows | None = None) -> pa.Array:
        words, valid = self._words.values, None if self._valid is None else self._valid.values
        if keys is not None:
            words, valid = words[keys], None if valid is None else valid[keys]
        return from_words(words, self._type, valid)

    def truncate(self, count: int) -> None:
        self._words.truncate(count)
        if self._valid is not None:
            self._valid.truncate(count)

    def frozen(self) -> FixedStore:
        copy = FixedStore(self._type)
        copy._words, copy._valid = self._words.frozen(), None if self._valid is None else self._valid.frozen()
        return copy

    @property
    def size_bytes(self) -> int:
        return self._words.size_bytes + (0 if self._valid is None else self._valid.size_bytes)


def words_of(column: pa.Array) -> Words:
    """Return the values of a column of fixed width as words; a null is a word of 0."""
    kind = column.type
    if column.null_count:
        column = column.fill_null(_zero(kind))
    if pa.types.is_boolean(kind):
        bits: Words = column.to_numpy(zero_copy_only=False).astype(np.uint64)
        return bits
    if pa.types.is_floating(kind):
        numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
        words: Words = numbers.view(np.uint64).copy()
        words[np.isnan(numbers)] = _NAN  # NaN is one key
        return words
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    whole: Words = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64)
    return whole


def _zero(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_temporal(kind):
        return pa.scalar(0, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.scalar(False if pa.types.is_boolean(kind) else 0, kind)


def from_words(words: Words, kind: pa.DataType, valid: NDArray[np.bool_] | None) -> pa.Array:
    """Return the column that words stand for."""
    mask = None if valid is None else ~valid
    if pa.types.is_boolean(kind):
        return pa.array(words.astype(np.bool_), kind, mask=mask)
    if pa.types.is_floating(kind):
        return pa.array(words.view(np.float64).astype(kind.to_pandas_dtype()), kind, mask=mask)
    numbers = words.view(np.int64)
    if pa.types.is_temporal(kind):
        narrow = numbers.astype(np.int32) if kind.bit_width == 32 else numbers
        return pa.array(narrow, mask=mask).view(kind)
    return pa.array(numbers.astype(kind.to_pandas_dtype()), kind, mask=mask)


class TextWords:
    """Texts or bytes of a batch as words of eight bytes, the first byte of a word in its lowest bits.

    Attributes:
        lengths: The length of each text in bytes.
        longest: The largest of them.
        valid: Which texts are not null; None if all are.
    """

    __slots__ = ("_at_any_byte", "_copies", "_kept", "lengths", "longest", "shortest", "starts", "valid")

    def __init__(self, column: pa.Array) -> None:
        wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
        _, offsets_buffer, data_buffer = column.buffers()
        offsets = np.frombuffer(offsets_buffer, dtype=np.int64 if wide else np.int32) if len(column) else np.zeros(1)
        offsets = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64) if len(column) else offsets
        first, end = int(offsets[0]), int(offsets[-1])
        data = np.zeros(end - first + _WORD, dtype=np.uint8)  # a word may begin at any byte, also at the last one
        if end > first:
            data[: end - first] = np.frombuffer(data_buffer, dtype=np.uint8)[first:end]
        self._at_any_byte: Words = np.ndarray(shape=(end - first + 1,), dtype="<u8", buffer=data, strides=(1,))
        self._copies = end - first < 32 * len(column)
        self._kept: dict[int, Words] = {}
        self.starts = offsets[:-1].astype(np.int64) - first
        self.lengths = np.diff(offsets).astype(np.int64)
        self.longest, self.shortest = int(self.lengths.max(initial=0)), int(self.lengths.min(initial=0))
        self.valid = None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)

    def __len__(self) -> int:
        return len(self.starts)

    def words(self, rows: Rows | None, position: int) -> Words:
        """Return the word of each row that begins at a byte; bytes behind the end of a text are 0."""
        kept = self._kept.get(position)
        if kept is not None:
            return kept if rows is None else kept.take(rows)
        starts, lengths = (self.starts, self.lengths) if rows is None else (self.starts[rows], self.lengths[rows])
        at = np.minimum(starts + position, len(self._at_any_byte) - 1)
        # `take` copies an unaligned array as a whole, which is faster than to index it if the texts are short.
        words = self._at_any_byte.take(at) if self._copies and rows is None else self._at_any_byte[at]
        if self.shortest < position + _WORD:
            words &= _MASKS.take(lengths - position, mode="clip")
        if rows is None and position < _KEPT_BYTES:
            self._kept[position] = words
        return words


class _TextColumn(TextWords):
    """Texts of a batch, hashed."""

    __slots__ = ("hashes",)

    def __init__(self, column: pa.Array) -> None:
        super().__init__(column)
        self.hashes = self._hashes()

    def _hashes(self) -> Words:
        hashes = self.lengths.astype(np.uint64)
        for position in range(0, self.longest, _WORD):
            if self.shortest > position:
                hashes = mixed_words(hashes ^ self.words(None, position))
            else:
                more = np.flatnonzero(self.lengths > position)
                hashes[more] = mixed_words(hashes[more] ^ self.words(more, position))
        if self.valid is not None:
            hashes = np.where(self.valid, hashes, _NULL)
        return hashes


class TextStore(KeyStore):
    """Keys of any length: texts and bytes, each padded with zeros to whole words."""

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._type = arrow_type
        self._words = Grown(np.uint64)
        self._starts = Grown(np.uint32)  # in words
        self._lengths = Grown(np.uint32)  # in bytes
        self._valid: Grown | None = None  # once a null was kept

    def prepare(self, column: pa.Array) -> _TextColumn:
        return _TextColumn(column)

    def equal(self, column: _TextColumn, at: Rows | None, kept: Rows) -> NDArray[np.bool_]:  # hot
        lengths = column.lengths if at is None else column.lengths.take(at)
        same: NDArray[np.bool_] = lengths == self._lengths.values.take(kept)
        if column.valid is not None or self._valid is not None:
            valid: Any = True if column.valid is None else column.valid if at is None else column.valid[at]
            same &= valid == (True if self._valid is None else self._valid.values[kept])
        starts = self._starts.values.take(kept).astype(np.int64)
        words, position = self._words.values, 0
        if column.longest <= _KEPT_BYTES and len(words):  # short texts are compared word by word, all of them
            for position in range(0, column.longest, _WORD):
                # Another key may be shorter: what is behind it is not looked at, since the lengths differ.
                equal = column.words(at, position) == words.take(starts + position // _WORD, mode="clip")
                if column.shortest <= position:
                    equal |= lengths <= position
                same &= equal
            return same
        pairs = np.flatnonzero(same & (lengths > 0))
        while len(pairs):
            mine = column.words(pairs if at is None else at[pairs], position)
            equal = mine == words.take(starts[pairs] + position // _WORD)
            same[pairs[~equal]] = False
            position += _WORD
            pairs = pairs[equal & (lengths[pairs] > position)]
        return same

    def append(self, column: _TextColumn, at: Rows) -> None:
        lengths = column.lengths[at]
        sizes = (lengths + _WORD - 1) // _WORD
        starts = np.cumsum(sizes) - sizes
        words = np.zeros(int(sizes.sum()), dtype=np.uint64)
        for position in range(0, int(lengths.max(initial=0)), _WORD):
            more = np.flatnonzero(lengths > position)
            words[starts[more] + position // _WORD] = column.words(at[more], position)
        if column.valid is not None and self._valid is None and not column.valid[at].all():
            self._valid = Grown(np.bool_)
            self._valid.extend(np.ones(self._lengths.length, dtype=np.bool_))
        if self._valid is not None:
            self._valid.extend(np.ones(len(at), dtype=np.bool_) if column.valid is None else column.valid[at])
        self._starts.extend((starts + self._words.length).astype(np.uint32))
        self._lengths.extend(lengths.astype(np.uint32))
        self._words.extend(words)

    def to_arrow(self, keys: Rows | None = None) -> pa.Array:
        chosen = slice(None) if keys is None else keys
        lengths = self._lengths.values[chosen].astype(np.int64)
        starts = self._starts.values[chosen].astype(np.int64)
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        at = np.arange(offsets[-1]) + np.repeat(starts * _WORD - offsets[:-1], lengths)
        data = self._words.values.view(np.uint8)[at]
        is_bytes = pa.types.is_binary(self._type) or pa.types.is_large_binary(self._type)
        wide = pa.large_binary() if is_bytes else pa.large_string()
        valid = None if self._valid is None else pa.array(self._valid.values[chosen]).buffers()[1]
        kept = pa.Array.from_buffers(wide, len(lengths), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
        return kept if wide == self._type else kept.cast(self._type)

    def truncate(self, count: int) -> None:
        if count < self._lengths.length:
            self._words.truncate(int(self._starts.values[count]))
            for vector in (self._starts, self._lengths, self._valid):
                if vector is not None:
                    vector.truncate(count)

    def frozen(self) -> TextStore:
        copy = TextStore(self._type)
        copy._words, copy._starts, copy._lengths = self._words.frozen(), self._starts.frozen(), self._lengths.frozen()
        copy._valid = None if self._valid is None else self._valid.frozen()
        return copy

    @property
    def size_bytes(self) -> int:
        validity = 0 if self._valid is None else self._valid.size_bytes
        return self._words.size_bytes + self._starts.size_bytes + self._lengths.size_bytes + validity


def store_for(kind: pa.DataType) -> KeyStore | None:
    """Return a store for keys of a type; None if keys of the type are kept as Python objects."""
    t = pa.types
    if t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind):
        return TextStore(kind)
    fixed = t.is_signed_integer(kind) or t.is_boolean(kind) or t.is_float32(kind) or t.is_float64(kind)
    if fixed or t.is_unsigned_integer(kind) or t.is_date(kind) or t.is_time(kind) or t.is_timestamp(kind):
        return FixedStore(kind)
    return None
