"""`Segments`: the rows of a batch, grouped by key without losing their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekorn.columns.key_words import Rows

__all__ = ["Segments", "accumulated", "stable_order"]

_LONG = 64  # rows of a key from which on the key is accumulated by a call of its own


class Segments:
    """The rows of a batch in the order of their keys; the rows of one key stay in their order.

    Attributes:
        keys: The number of the key of each row of the batch.
        order: The positions of the rows, key by key.
        starts: Where each key's rows begin in `order`.
        counts: How many rows each key has.
        distinct: The number of the key of each segment.
    """

    __slots__ = ("counts", "distinct", "keys", "order", "starts")

    def __init__(self, keys: Rows) -> None:
        self.keys = keys
        self.order = stable_order(keys)
        in_order = keys[self.order]
        begins = np.empty(len(keys), dtype=np.bool_)
        begins[:1] = True
        np.not_equal(in_order[1:], in_order[:-1], out=begins[1:])
        self.starts = np.flatnonzero(begins)
        self.counts = np.diff(self.starts, append=len(keys))
        self.distinct = in_order[self.starts]

    def last_rows(self) -> Rows:
        """Return the position of the last row of each key."""
        return self.order[self.starts + self.counts - 1]

    def ranks(self) -> Rows:
        """Return for each row of the batch how many rows of its key come before it in the batch."""
        ranks = np.empty(len(self.keys), dtype=np.int64)
        ranks[self.order] = np.arange(len(self.keys)) - np.repeat(self.starts, self.counts)
        return ranks

    def scattered(self, in_order: NDArray[Any]) -> NDArray[Any]:
        """Return values that are in the order of keys in the order of the batch."""
        result = np.empty_like(in_order)
        result[self.order] = in_order
        return result


def stable_order(keys: Rows) -> Rows:
    """Return a stable order of non-negative numbers. NumPy sorts 16 bits at a time by counting, ten times faster."""
    if not len(keys):
        return np.empty(0, dtype=np.int64)
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    highest = int(keys.max()) >> 16
    shift = 16
    while highest:
        order = order[np.argsort((keys[order] >> shift).astype(np.uint16), kind="stable")]
        highest >>= 16
        shift += 16
    return order


def accumulated(ufunc: np.ufunc, values: NDArray[Any], segments: Segments, initial: NDArray[Any]) -> NDArray[Any]:
    """Return the running value of a binary function, in the order of keys.

    Each key begins with its initial value, and takes its values one after the other: sums of floats are those of a
    loop over the records, to the last bit.

    Args:
        ufunc: The function.
        values: The values in the order of keys.
        segments: The segments of the batch.
        initial: The value of each key before the batch.
    """
    result = np.empty(len(values), dtype=initial.dtype)
    current = initial.copy()
    short = segments.counts < _LONG
    starts, counts = segments.starts, segments.counts
    open_keys = np.flatnonzero(short)
    rank = 0
    while len(open_keys):
        at = starts[open_keys] + rank
        current[open_keys] = result[at] = ufunc(current[open_keys], values[at])
        rank += 1
        open_keys = open_keys[counts[open_keys] > rank]
    for key in np.flatnonzero(~short).tolist():
        start, end = int(starts[key]), int(starts[key] + counts[key])
        run = np.empty(end - start + 1, dtype=initial.dtype)
        run[0] = initial[key]
        run[1:] = values[start:end]
        result[start:end] = ufunc.accumulate(run)[1:]
    return result
