"""`KeyRows`: the rows of a batch by their keys, with values along the rows of each key and from rows to keys and back.

The keys of a batch have positions from 0. Results are those of a loop over the rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.key_words import Rows
from ekorn.columns.segments import Segments, accumulated
from ekorn.errors import AggregateOverflowError

__all__ = ["KeyRows", "as_mask", "numbers_in"]

_SAFE = float(1 << 62)
Numbers = NDArray[Any]


class KeyRows:
    """The rows of a batch by their keys.

    Args:
        key_of_row: The position of each row's key. Each key has a row.
        key_count: The number of keys.
    """

    def __init__(self, key_of_row: Rows, key_count: int) -> None:
        self.key_of_row = key_of_row
        self.key_count = key_count

    @classmethod
    def numbered(cls, numbers: Rows) -> tuple[KeyRows, Rows]:
        """Return the rows by any numbers of their keys, and the number of each key."""
        segments = Segments(numbers)
        count = len(segments.distinct)
        keys = segments.scattered(np.repeat(np.arange(count), segments.counts))
        rows = cls(keys, count)
        segments.keys, rows.segments = keys, segments
        found: Rows = segments.distinct
        segments.distinct = np.arange(count)
        return rows, found

    def __len__(self) -> int:
        return len(self.key_of_row)

    @cached_property
    def segments(self) -> Segments:
        """The rows in the order of their keys."""
        return Segments(self.key_of_row)

    # ------------------------------------------------------------------------------------- between keys and rows

    def to_rows(self, values: Any) -> Any:
        """Return for each row the value of its key."""
        return _taken(self._for_keys(values), self.key_of_row)

    def first(self, values: Any) -> Any:
        """Return the value of the first row of each key."""
        return _taken(self._for_rows(values), self.segments.order[self.segments.starts])

    def last(self, values: Any) -> Any:
        """Return the value of the last row of each key."""
        return _taken(self._for_rows(values), self.segments.last_rows())

    def previous(self, values: Any, start: Any = None) -> Any:
        """Return the value of the row before each row of its key; for the first one the key's `start`, or null."""
        values, segments = self._for_rows(values), self.segments
        before: Rows = np.empty(len(self), dtype=np.int64)
        before[segments.order[1:]] = segments.order[:-1]
        firsts = segments.order[segments.starts]
        if start is None:
            before[firsts] = -1
            return _arrow(values).take(pa.array(before, mask=before < 0))
        kept = self._for_keys(start)
        before[firsts] = len(self) + np.arange(self.key_count)
        if isinstance(values, np.ndarray) and isinstance(kept, np.ndarray):
            return np.concatenate([values, kept])[before]
        values = _arrow(values)
        kept = _arrow(kept)
        if kept.type != values.type:
            kept = kept.cast(values.type)
        return pa.concat_arrays([values, kept]).take(pa.array(before))

    # ------------------------------------------------------------------------------------- aggregates of each key

    def sums(self, values: Any) -> Numbers:
        """Return the sum of the rows of each key. Floats are added in the order of the rows."""
        numbers = numbers_in(self._for_rows(values), 0)
        if numbers.dtype.kind == "f":
            return np.bincount(self.key_of_row, weights=numbers, minlength=self.key_count)
        return self.last(self.running_sum(numbers))  # type: ignore[no-any-return]

    def extremes(self, ufunc: np.ufunc, values: Any) -> Numbers:
        """Return the smallest or largest value of each key, by `np.minimum` or `np.maximum`. Nulls do not count."""
        numbers = numbers_in(self._for_rows(values), _neutral(ufunc, self._for_rows(values)))
        if not len(self):
            return numbers
        found: Numbers = ufunc.reduceat(numbers[self.segments.order], self.segments.starts)
        return found

    # ------------------------------------------------------------------------------------- along the rows of a key

    def rank(self, start: Any = 0) -> Rows:
        """Return how many rows of its key come before each row, and `start`."""
        ranks: Rows = self.segments.ranks() + self.to_rows(numbers_in(self._for_keys(start), 0))
        return ranks

    def running_sum(self, values: Any, start: Any = 0) -> Numbers:
        """Return the sum of the rows of its key up to each row, and `start`. Nulls count as 0.

        Raises:
            AggregateOverflowError: A sum of whole numbers does not fit 64 bits.
        """
        numbers = numbers_in(self._for_rows(values), 0)
        before = numbers_in(self._for_keys(start), 0)
        segments = self.segments
        if numbers.dtype.kind == "f" or before.dtype.kind == "f":
            in_order = numbers[segments.order].astype(np.float64, copy=False)
            return segments.scattered(accumulated(np.add, in_order, segments, before.astype(np.float64)))
        numbers, before = numbers.astype(np.int64, copy=False), before.astype(np.int64, copy=False)
        largest = np.abs(numbers.astype(np.float64)).sum() + np.abs(before.astype(np.float64)).max(initial=0.0)
        if largest >= _SAFE:
            self._check_sums(numbers, before)
        values_in_order = numbers[segments.order]
        with np.errstate(over="ignore"):  # the sum over all keys may leave 64 bits where those of keys do not
            sums = np.cumsum(values_in_order)
            base = sums[segments.starts] - values_in_order[segments.starts]
            return segments.scattered(sums + np.repeat(before - base, segments.counts))

    def _check_sums(self, numbers: NDArray[np.int64], before: NDArray[np.int64]) -> None:
        totals = before.tolist()
        for row, (key, number) in enumerate(zip(self.key_of_row.tolist(), numbers.tolist(), strict=True)):
            totals[key] += number
            if not -(1 << 63) <= totals[key] < 1 << 63:
                error = AggregateOverflowError("running_sum()", totals[key])
                error.row_in_batch = row
                raise error

    def running_extreme(self, ufunc: np.ufunc, values: Any, start: Any = None) -> Numbers:
        """Return the smallest or largest value of its key up to each row, and `start`. Nulls do not count."""
        neutral = _neutral(ufunc, self._for_rows(values))
        numbers = numbers_in(self._for_rows(values), neutral)
        before = self._for_keys(neutral if start is None else start)
        kept = numbers_in(before, _neutral(ufunc, before))
        kind = np.result_type(numbers.dtype, kept.dtype)
        in_order = numbers[self.segments.order].astype(kind, copy=False)
        return self.segments.scattered(accumulated(ufunc, in_order, self.segments, kept.astype(kind)))

    # ------------------------------------------------------------------------------------- arguments

    def _for_rows(self, values: Any) -> Any:
        return _vector(values, len(self), "row")

    def _for_keys(self, values: Any) -> Any:
        if not isinstance(values, pa.Array | pa.ChunkedArray | np.ndarray | list | tuple):
            return np.full(self.key_count, values)
        return _vector(values, self.key_count, "key")


def _vector(values: Any, count: int, each: str) -> Any:
    """Return values as an array of Arrow or of NumPy.

    Raises:
        ValueError: There is another number of them.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    elif isinstance(values, list | tuple):
        values = pa.array(values)
    elif not isinstance(values, pa.Array):
        values = np.asarray(values)
    if len(values) != count:
        raise ValueError(f"expected a value for each {each}, which are {count}, and got {len(values)}")
    return values


def numbers_in(values: Any, null: Any) -> Numbers:
    """Return numbers as a NumPy array, with a number that stands for null.

    Raises:
        TypeError: They are not numbers.
    """
    if isinstance(values, pa.Array):
        if values.null_count:
            values = values.fill_null(pa.scalar(null, values.type) if not isinstance(null, pa.Scalar) else null)
        values = values.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    if values.dtype.kind not in "iufmM":
        raise TypeError(f"expected numbers, and got values of type {values.dtype}")
    return values  # type: ignore[no-any-return]


def as_mask(where: Any, count: int, each: str) -> NDArray[np.bool_] | None:
    """Return a mask as a NumPy array; None if there is none. Null is false."""
    if where is None:
        return None
    if isinstance(where, pa.Array | pa.ChunkedArray):
        where = where.fill_null(False).to_numpy(zero_copy_only=False)
    mask = np.asarray(where)
    if mask.dtype != np.bool_ or len(mask) != count:
        raise ValueError(
            f"a mask has a bool for each {each}, which are {count}; got {len(mask)} values of type {mask.dtype}"
        )
    return mask


def _neutral(ufunc: np.ufunc, values: Any) -> Any:
    """Return what changes no minimum, or no maximum, of values of a type."""
    largest = ufunc is np.minimum
    if isinstance(values, pa.Array):
        values = numbers_in(values.slice(0, 0), 0)
    kind = values.dtype
    if kind.kind == "f":
        return kind.type(np.inf if largest else -np.inf)
    if kind.kind == "b":
        kind = np.dtype(np.int64)
    if kind.kind in "mM":
        return None
    return (np.iinfo(kind).max if largest else np.iinfo(kind).min) if kind.kind in "iu" else 0


def _taken(values: Any, at: Rows) -> Any:
    return values.take(pa.array(at)) if isinstance(values, pa.Array) else values[at]


def _arrow(values: Any) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values)
