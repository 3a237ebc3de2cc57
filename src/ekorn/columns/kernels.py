"""Kernels: the aggregates of `functions/column_aggregates.py`, computed for all keys of a batch at once.

A kernel keeps the accumulators of one aggregate in vectors, one element a key. Its results are those of the aggregate
called row by row. Columns that have no kernel of their own (texts, decimals, nested types) are aggregated row by row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.key_words import Rows
from ekorn.columns.segments import Segments, accumulated
from ekorn.functions.column_aggregates import ColumnAggregate, Count, First, Last, Max, Mean, Min, Sum

__all__ = ["EndKernel", "Kernel", "SumOverflow", "is_plain", "kernel_for"]

_SAFE = 1 << 62
_FIRST_KEYS = 64


class SumOverflow(Exception):
    """A sum of whole numbers does not fit 64 bits. The caller knows the aggregate, and names it.

    Attributes:
        total: The sum.
        row: The position of the row among those that the kernel got.
    """

    def __init__(self, total: int, row: int) -> None:
        super().__init__(total, row)
        self.total = total
        self.row = row


class Kernel(ABC):
    """The accumulators of one aggregate, one for each key."""

    can_be_put_back = True
    """Whether `_vectors` are all there is. Other kernels take a batch last, when no other one can fail any more."""

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType) -> None:
        self.aggregate = aggregate
        self.result_type = result_type
        self._vectors: list[NDArray[Any]] = []  # of one length; elements that no key has yet are those of no rows

    def argument(self, data: pa.RecordBatch, times: NDArray[np.int64] | None) -> Any:
        """Return what `update` and `running` take of a batch: the column; None for an aggregate of whole rows."""
        return data.column(self.aggregate.column) if self.aggregate.column else None

    @abstractmethod
    def update(self, keys: Rows, column: pa.Array | None) -> None:
        """Take the rows of a batch into the accumulators of their keys."""

    @abstractmethod
    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        """Take the rows of a batch; return the result of each row's key as it is with that row."""

    @abstractmethod
    def results(self, keys: Rows) -> pa.Array:
        """Return the results of some keys."""

    @abstractmethod
    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        """Return the accumulators of some keys as the aggregate keeps them, one field after the other."""

    @abstractmethod
    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        """Set the accumulators of some keys."""

    def reset(self, keys: Rows) -> None:
        """Set the accumulators of some keys to those of no rows."""
        self.load(keys, [self.aggregate.create()] * len(keys))

    def kept(self, keys: Rows) -> list[NDArray[Any]]:
        """Return copies of the accumulators of some keys, for `put_back`."""
        return [deepcopy(vector[keys]) for vector in self._vectors] if self.can_be_put_back else []

    def put_back(self, keys: Rows, kept: list[NDArray[Any]], *, count: int) -> None:
        """Set accumulators to what they were, and forget those of keys whose numbers are not below `count`."""
        if not self.can_be_put_back:
            return
        for vector, values in zip(self._vectors, kept, strict=True):
            vector[keys] = values
            vector[count:] = 0

    def frozen(self) -> Kernel:
        """Return a copy that later batches do not change."""
        copy: Kernel = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._vectors = [vector.copy() for vector in self._vectors]
        return copy

    def keep(self, keys: Rows) -> None:
        """Keep the accumulators of some keys alone. They are numbered from 0, in the order given."""
        for number, vector in enumerate(self._vectors):
            kept = np.zeros(max(len(keys), _FIRST_KEYS), dtype=vector.dtype)
            kept[: len(keys)] = vector[keys]
            self._vectors[number] = kept

    def make_room(self, keys: int) -> None:
        """Let the vectors have an element for each key."""
        for number, vector in enumerate(self._vectors):
            if len(vector) < keys:
                grown = np.zeros(max(keys, _FIRST_KEYS, len(vector) * 9 // 8), dtype=vector.dtype)
                grown[: len(vector)] = vector
                self._vectors[number] = grown

    @property
    def size_bytes(self) -> int:
        """The memory of the accumulators."""
        return sum(vector.nbytes for vector in self._vectors)


def _valid(column: pa.Array) -> NDArray[np.bool_] | None:
    return None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)


class CountKernel(Kernel):
    """Counts rows, or values that are not null."""

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        self._vectors = [np.zeros(_FIRST_KEYS, dtype=np.int64)]

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        valid = None if column is None else _valid(column)
        np.add.at(self._vectors[0], keys if valid is None else keys[valid], 1)

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        valid = None if column is None else _valid(column)
        if valid is None:
            counts = self._vectors[0][segments.keys] + segments.ranks() + 1
            self._vectors[0][segments.distinct] += segments.counts
            return pa.array(counts)
        ones = valid[segments.order].astype(np.int64)
        before = self._vectors[0][segments.distinct]
        in_order = _running_sums(ones, segments, before)
        self._vectors[0][segments.distinct] = in_order[segments.starts + segments.counts - 1]
        return pa.array(segments.scattered(in_order))

    def results(self, keys: Rows) -> pa.Array:
        return pa.array(self._vectors[0][keys])

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        return [(count,) for count in self._vectors[0][keys].tolist()]

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        self._vectors[0][keys] = [count for (count,) in accumulators]


def _running_sums(values: NDArray[np.int64], segments: Segments, before: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the running sums of whole numbers in the order of keys: one sum over all keys, less what came before."""
    sums = np.cumsum(values)
    base = sums[segments.starts] - values[segments.starts]
    result: NDArray[np.int64] = sums + np.repeat(before - base, segments.counts)
    return result


class SumKernel(Kernel):
    """Sums whole numbers or floats."""

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        self._whole = pa.types.is_integer(result_type)
        dtype = np.int64 if self._whole else np.float64
        self._vectors = [np.zeros(_FIRST_KEYS, dtype=dtype), np.zeros(_FIRST_KEYS, dtype=np.bool_)]

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        assert column is not None
        values, valid = self._numbers(column)
        if valid is not None:
            keys, values = keys[valid], values[valid]
        if not len(keys):
            return
        if self._whole:
            self._check(keys, keys, values, valid)
        sums, known = self._vectors
        if not self._whole:  # the first value is the sum: adding it to 0.0 would turn -0.0 into 0.0
            fresh = ~known[keys]
            if fresh.any():
                sums[keys[fresh]] = -0.0
        np.add.at(sums, keys, values)
        known[keys] = True

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        assert column is not None
        values, valid = self._numbers(column)
        sums, known = self._vectors
        before, knew = sums[segments.distinct], known[segments.distinct]
        if self._whole:
            self._check(segments.distinct, segments.keys, values, None)
            in_order = _running_sums(values[segments.order], segments, before)
        else:
            before = np.where(knew, before, -0.0)
            if valid is not None:
                values = np.where(valid, values, -0.0)  # leaves every sum as it is
            in_order = accumulated(np.add, values[segments.order], segments, before)
        last = segments.starts + segments.counts - 1
        sums[segments.distinct] = in_order[last]
        if valid is None:
            known[segments.distinct] = True
            return pa.array(segments.scattered(in_order))
        seen = _running_sums(valid[segments.order].astype(np.int64), segments, knew.astype(np.int64)) > 0
        known[segments.distinct] = seen[last]
        return pa.array(segments.scattered(in_order), mask=~segments.scattered(seen))

    def _numbers(self, column: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        valid = _valid(column)
        if valid is not None:
            column = column.fill_null(pa.scalar(0, column.type))
        values = column.to_numpy(zero_copy_only=False)
        return values.astype(self._vectors[0].dtype, copy=False), valid

    def _check(self, distinct: Rows, keys: Rows, values: NDArray[np.int64], valid: NDArray[np.bool_] | None) -> None:
        """Refuse sums that do not fit 64 bits. Most batches are far from it, and are only looked at.

        Args:
            distinct: The keys of the values; one may be there several times.
            keys: The key of each value.
            values: The values.
            valid: Which of the rows have a value, if the others were left out.
        """
        if not len(values):
            return
        sums = self._vectors[0].take(distinct)
        most = max(abs(int(values.max())), abs(int(values.min())))
        held = max(abs(int(sums.max())), abs(int(sums.min())))
        if most * len(values) + held < _SAFE:
            return
        exact = {key: int(total) for key, total in zip(distinct.tolist(), sums.tolist(), strict=True)}
        for number, (key, value) in enumerate(zip(keys.tolist(), values.tolist(), strict=True)):
            exact[key] += value
            if not -(1 << 63) <= exact[key] < 1 << 63:
                raise SumOverflow(exact[key], number if valid is None else int(np.flatnonzero(valid)[number]))

    def results(self, keys: Rows) -> pa.Array:
        known = self._vectors[1][keys]
        return pa.array(self._vectors[0][keys], mask=None if known.all() else ~known)

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        pairs = zip(self._vectors[0][keys].tolist(), self._vectors[1][keys].tolist(), strict=True)
        return [(total if known else None,) for total, known in pairs]

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        self._vectors[0][keys] = [0 if total is None else total for (total,) in accumulators]
        self._vectors[1][keys] = [total is not None for (total,) in accumulators]


class MeanKernel(Kernel):
    """Means of numbers."""

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        self._vectors = [np.zeros(_FIRST_KEYS, dtype=np.float64), np.zeros(_FIRST_KEYS, dtype=np.int64)]

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        assert column is not None
        valid = _valid(column)
        values = _floats(column)
        if valid is not None:
            keys, values = keys[valid], values[valid]
        np.add.at(self._vectors[0], keys, values)
        np.add.at(self._vectors[1], keys, 1)

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        assert column is not None
        valid = _valid(column)
        values = _floats(column)
        if valid is not None:
            values = np.where(valid, values, -0.0)
        ones = np.ones(len(values), np.int64) if valid is None else valid[segments.order].astype(np.int64)
        sums, counts = (vector[segments.distinct] for vector in self._vectors)
        sums = accumulated(np.add, values[segments.order], segments, sums)
        counts = _running_sums(ones, segments, counts)
        last = segments.starts + segments.counts - 1
        self._vectors[0][segments.distinct], self._vectors[1][segments.distinct] = sums[last], counts[last]
        return _quotients(segments.scattered(sums), segments.scattered(counts))

    def results(self, keys: Rows) -> pa.Array:
        return _quotients(self._vectors[0][keys], self._vectors[1][keys])

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        return list(zip(*(vector[keys].tolist() for vector in self._vectors), strict=True))

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        for number, vector in enumerate(self._vectors):
            vector[keys] = [accumulator[number] for accumulator in accumulators]


def _floats(column: pa.Array) -> NDArray[np.float64]:
    if column.null_count:
        column = column.fill_null(pa.scalar(0, column.type))
    values: NDArray[np.float64] = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return values


def _quotients(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> pa.Array:
    none = counts == 0
    return pa.array(sums / np.maximum(counts, 1), mask=none if none.any() else None)


class ExtremeKernel(Kernel):
    """The smallest or largest numbers, dates or times."""

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        floats = pa.types.is_floating(result_type)
        smallest = isinstance(aggregate, Min)
        # NaN is larger than all numbers: the smaller of two passes it over, the larger one keeps it.
        self._choose: np.ufunc = np.fmin if smallest else np.maximum
        if floats:
            # The largest value there is: NaN. It stays only where every value is NaN.
            self._nothing: Any = np.nan if smallest else -np.inf
        else:
            self._nothing = np.iinfo(np.int64).max if smallest else np.iinfo(np.int64).min
        dtype = np.float64 if floats else np.int64
        self._vectors = [np.zeros(_FIRST_KEYS, dtype=dtype), np.zeros(_FIRST_KEYS, dtype=np.bool_)]

    def _plain(self, column: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        valid = _valid(column)
        numbers = _as_numbers(column)
        values = numbers.to_numpy(zero_copy_only=False).astype(self._vectors[0].dtype, copy=False)
        return (values if valid is None else np.where(valid, values, self._nothing)), valid

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        assert column is not None
        values, valid = self._plain(column)
        if valid is not None:
            keys, values = keys[valid], values[valid]
        best, known = self._vectors
        best[keys[~known[keys]]] = self._nothing
        self._choose.at(best, keys, values)
        known[keys] = True

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        assert column is not None
        values, valid = self._plain(column)
        best, known = self._vectors
        knew = known[segments.distinct]
        before = np.where(knew, best[segments.distinct], self._nothing)
        in_order = accumulated(self._choose, values[segments.order], segments, before)
        last = segments.starts + segments.counts - 1
        best[segments.distinct] = in_order[last]
        if valid is None:
            known[segments.distinct] = True
            return self._typed(segments.scattered(in_order), None)
        seen = _running_sums(valid[segments.order].astype(np.int64), segments, knew.astype(np.int64)) > 0
        known[segments.distinct] = seen[last]
        return self._typed(segments.scattered(in_order), ~segments.scattered(seen))

    def _typed(self, values: NDArray[Any], missing: NDArray[np.bool_] | None) -> pa.Array:
        return _typed(values, self.result_type, missing)

    def results(self, keys: Rows) -> pa.Array:
        known = self._vectors[1][keys]
        return self._typed(self._vectors[0][keys], None if known.all() else ~known)

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        return [(value,) for value in self.results(keys).to_pylist()]

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        column = pa.array([value for (value,) in accumulators], self.result_type)
        values, valid = self._plain(column)
        self._vectors[0][keys] = values
        self._vectors[1][keys] = True if valid is None else valid


def _as_numbers(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.fill_null(0) if column.null_count else column


def _typed(values: NDArray[Any], kind: pa.DataType, missing: NDArray[np.bool_] | None) -> pa.Array:
    if pa.types.is_temporal(kind):
        narrow = values.astype(np.int32) if kind.bit_width == 32 else values
        return pa.array(narrow, mask=missing).view(kind)
    if missing is not None:
        values = np.where(missing, 0, values)
    if pa.types.is_boolean(kind):
        return pa.array(values.astype(np.bool_), kind, mask=missing)
    return pa.array(values.astype(kind.to_pandas_dtype()), kind, mask=missing)


class EndKernel(Kernel):
    """The first or last numbers, dates, times or booleans."""

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        dtype = np.float64 if pa.types.is_floating(result_type) else np.int64
        self._vectors = [np.zeros(_FIRST_KEYS, dtype=dtype), np.zeros(_FIRST_KEYS, dtype=np.bool_)]
        self._is_last = isinstance(aggregate, Last)

    def _plain(self, column: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        valid = _valid(column)
        values = _as_numbers(column).to_numpy(zero_copy_only=False).astype(self._vectors[0].dtype, copy=False)
        return values, np.ones(len(values), np.bool_) if valid is None else valid

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        assert column is not None
        values, valid = self._plain(column)
        ends, known = self._vectors
        wanted = valid if self._is_last else valid & ~known[keys]
        rows = np.flatnonzero(wanted)
        if not self._is_last:
            rows = rows[::-1]  # of several values for one key, the one assigned last stays: the first
        ends[keys[rows]] = values[rows]
        known[keys[rows]] = True

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        assert column is not None
        values, valid = self._plain(column)
        ends, known = self._vectors
        count = len(values)
        positions = np.where(valid[segments.order], np.arange(count), -1)
        segment_of = np.repeat(np.arange(len(segments.starts)), segments.counts)
        if self._is_last:
            source = np.maximum.accumulate(positions)
            source = np.where(source >= segments.starts[segment_of], source, -1)
            seen_here = source >= 0
        else:
            first = np.full(len(segments.starts), count, dtype=np.int64)
            np.minimum.at(first, segment_of[positions >= 0], positions[positions >= 0])
            source = first[segment_of]
            seen_here = source <= np.arange(count)
        knew, before = known[segments.distinct][segment_of], ends[segments.distinct][segment_of]
        mine = values[segments.order][np.clip(source, 0, count - 1)]
        takes_mine = seen_here if self._is_last else seen_here & ~knew
        in_order = np.where(takes_mine, mine, before)
        seen = seen_here | knew
        last = segments.starts + segments.counts - 1
        ends[segments.distinct], known[segments.distinct] = in_order[last], seen[last]
        missing = None if seen.all() else ~segments.scattered(seen)
        return _typed(segments.scattered(in_order), self.result_type, missing)

    def results(self, keys: Rows) -> pa.Array:
        known = self._vectors[1][keys]
        return _typed(self._vectors[0][keys], self.result_type, None if known.all() else ~known)

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        return [(value,) for value in self.results(keys).to_pylist()]

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        values, valid = self._plain(pa.array([value for (value,) in accumulators], self.result_type))
        self._vectors[0][keys], self._vectors[1][keys] = values, valid


class ObjectKernel(Kernel):
    """Any aggregate of any column: the accumulators are Python objects, and rows are taken one by one."""

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        self._vectors = [np.zeros(_FIRST_KEYS, dtype=np.object_)]

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        self._take(keys, column)

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        result = self.aggregate.result
        return pa.array([result(each) for each in self._take(segments.keys, column)], self.result_type)

    def _take(self, keys: Rows, column: pa.Array | None) -> list[tuple[Any, ...]]:
        values = [None] * len(keys) if column is None else column.to_pylist()
        kept, add, create = self._vectors[0], self.aggregate.add, self.aggregate.create
        taken = []
        for key, value in zip(keys.tolist(), values, strict=True):
            accumulator = kept[key] or create()
            if value is not None or column is None:
                accumulator = add(accumulator, value)
            kept[key] = accumulator
            taken.append(accumulator)
        return taken

    def results(self, keys: Rows) -> pa.Array:
        return pa.array([self.aggregate.result(each) for each in self.accumulators(keys)], self.result_type)

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        kept, create = self._vectors[0], self.aggregate.create
        return [kept[key] or create() for key in keys.tolist()]

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        for key, accumulator in zip(keys.tolist(), accumulators, strict=True):
            self._vectors[0][key] = accumulator


def kernel_for(aggregate: ColumnAggregate, column_type: pa.DataType | None, result_type: pa.DataType) -> Kernel:
    """Return the kernel of an aggregate of a column.

    Args:
        aggregate: The aggregate.
        column_type: The type of the column; None for an aggregate of whole rows.
        result_type: The type of the results.
    """
    kind = type(aggregate)
    if kind is Count:
        return CountKernel(aggregate, result_type)
    assert column_type is not None, "the program checks that an aggregate names a column"
    number = _is_number(column_type)
    if kind is Sum and number:
        return SumKernel(aggregate, result_type)
    if kind is Mean and number:
        return MeanKernel(aggregate, result_type)
    if kind in (Min, Max) and is_plain(column_type):
        return ExtremeKernel(aggregate, result_type)
    if kind in (First, Last) and is_plain(column_type):
        return EndKernel(aggregate, result_type)
    return ObjectKernel(aggregate, result_type)


def is_plain(kind: pa.DataType) -> bool:
    """Return whether a vector of NumPy holds the values of a type: numbers, dates, times and booleans."""
    t = pa.types
    return bool(_is_number(kind) or t.is_date(kind) or t.is_time(kind) or t.is_timestamp(kind) or t.is_boolean(kind))


def _is_number(kind: pa.DataType) -> bool:
    t = pa.types
    return bool((t.is_integer(kind) and kind != pa.uint64()) or t.is_float32(kind) or t.is_float64(kind))
