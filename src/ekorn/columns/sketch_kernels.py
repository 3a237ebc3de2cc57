"""The kernels of quantiles and distinct counts (`functions/sketch_aggregates.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.kernels import Kernel
from ekorn.columns.key_elements import NOWHERE, KeyElements
from ekorn.columns.key_words import Grown, Rows
from ekorn.columns.segments import Segments, accumulated
from ekorn.columns.value_hashes import ValuesOfRows, hashes_of, plain_floats
from ekorn.functions import sketches
from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.sketch_aggregates import Quantile

__all__ = ["ApproxDistinctKernel", "DistinctKernel", "QuantileKernel"]

_FIRST_KEYS = 64
_FEW = 1024  # elements of keys that were reset, which are not worth the work to drop them


def _is_valid(column: pa.Array) -> NDArray[np.bool_] | None:
    return None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)


def _totals(values: NDArray[np.int64], segments: Segments, before: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return running sums in the order of keys."""
    sums = np.cumsum(values)
    base = sums[segments.starts] - values[segments.starts]
    totals: NDArray[np.int64] = sums + np.repeat(before - base, segments.counts)
    return totals


class _ElementsKernel(Kernel):
    """A kernel whose keys have elements. Its vectors are the places of keys, and how much each key has."""

    can_be_put_back = False

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType, kind: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        self._vectors = [np.zeros(_FIRST_KEYS, dtype=np.int64), np.zeros(_FIRST_KEYS, dtype=np.int64)]
        self._elements = KeyElements(kind)
        self._left = 0  # elements of keys that were reset

    def reset(self, keys: Rows) -> None:
        places = self._vectors[0]
        self._left += len(self._elements.of(places[keys])[0])
        places[keys] = NOWHERE
        self._vectors[1][keys] = 0
        if self._left > max(_FEW, len(self._elements) // 2):
            self._compact()

    def _compact(self) -> Rows:
        """Drop the elements that belong to no key; return which are kept."""
        self._elements, kept = self._elements.chosen(self._vectors[0])
        self._left = 0
        return kept

    def keep(self, keys: Rows) -> None:
        super().keep(keys)
        self._compact()

    def frozen(self) -> Kernel:
        copy = super().frozen()
        assert isinstance(copy, _ElementsKernel)
        copy._elements = self._elements.frozen()
        return copy

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + self._elements.size_bytes

    def _in_order(self, keys: Rows) -> tuple[Rows, Rows, NDArray[np.int64]]:
        """Return the elements of some keys: positions of keys in ascending order, elements, and how many a key has."""
        owners, elements = self._elements.of(self._vectors[0][keys])
        order = np.lexsort((elements, owners))
        return owners[order], elements[order], np.bincount(owners, minlength=len(keys))


class DistinctKernel(_ElementsKernel):
    """Counts the distinct values of each key, and keeps all of them."""

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType, kind: pa.DataType) -> None:
        super().__init__(aggregate, result_type, kind)
        self._values = ValuesOfRows(kind)

    def _taken(self, keys: Rows, column: pa.Array | None) -> tuple[NDArray[np.bool_] | None, Rows, Rows]:
        """Take the rows of a batch; return which have a value, and the keys and positions of those that are new."""
        assert column is not None
        valid = _is_valid(column)
        if valid is not None:
            keys, column = keys[valid], column.drop_null()
        if not len(keys):
            return valid, keys, keys
        if pa.types.is_floating(column.type):
            plain = plain_floats(column.to_numpy().astype(np.float64))
            column = pa.array(plain.astype(column.type.to_pandas_dtype()), column.type)
        before = len(self._elements)
        elements = self._elements.rows(self._elements.placed(self._vectors[0], keys), column)
        fresh = np.flatnonzero(elements >= before)
        _, firsts = np.unique(elements[fresh], return_index=True)
        positions = fresh[firsts]
        return valid, keys[positions], positions if valid is None else np.flatnonzero(valid)[positions]

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        _, new, _ = self._taken(keys, column)
        np.add.at(self._vectors[1], new, 1)

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        counts = self._vectors[1]
        _, _, positions = self._taken(segments.keys, column)
        ones = np.zeros(len(segments.keys), dtype=np.int64)
        ones[positions] = 1
        in_order = _totals(ones[segments.order], segments, counts[segments.distinct])
        counts[segments.distinct] = in_order[segments.starts + segments.counts - 1]
        return pa.array(segments.scattered(in_order))

    def results(self, keys: Rows) -> pa.Array:
        return pa.array(self._vectors[1][keys])

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        _, elements, counts = self._in_order(keys)
        values = [None if each != each else each for each in self._values.values(self._elements.values(elements))]
        found, first = [], 0
        for count in counts.tolist():
            found.append((frozenset(values[first : first + count]),))
            first += count
        return found

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        self.reset(keys)
        counts = np.array([len(values) for (values,) in accumulators], dtype=np.int64)
        given = [float("nan") if each is None else each for (values,) in accumulators for each in values]
        if given:
            self.update(np.repeat(keys, counts), self._values.column(given))


class QuantileKernel(_ElementsKernel):
    """Counts the values of each key by bucket."""

    aggregate: Quantile

    def __init__(self, aggregate: Quantile, result_type: pa.DataType, kind: pa.DataType) -> None:
        super().__init__(aggregate, result_type, pa.int64())
        self._counts = Grown(np.int64)  # of each element, which is a bucket
        self._decimals = pa.types.is_decimal(kind)

    def _compact(self) -> Rows:
        kept = super()._compact()
        counts = self._counts.values[kept]
        self._counts = Grown(np.int64)
        self._counts.extend(counts)
        return kept

    def frozen(self) -> Kernel:
        copy = super().frozen()
        assert isinstance(copy, QuantileKernel)
        copy._counts = Grown(np.int64)
        copy._counts.extend(self._counts.values)
        return copy

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + self._counts.size_bytes

    def _buckets(self, column: pa.Array) -> NDArray[np.int64]:
        """Return the bucket of each value of a column without nulls."""
        if self._decimals:
            numbers = np.array([float(each) for each in column.to_pylist()], dtype=np.float64)
        else:
            numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
        plain = plain_floats(numbers)
        buckets = np.abs(plain).view(np.int64) >> (52 - sketches.BITS_KEPT)
        return np.where(plain < 0, -buckets - 1, buckets)

    def _taken(self, keys: Rows, column: pa.Array | None) -> tuple[NDArray[np.bool_] | None, Rows]:
        """Make elements of the values of a batch; return which rows have a value, and the elements of those."""
        assert column is not None
        valid = _is_valid(column)
        if valid is not None:
            keys, column = keys[valid], column.drop_null()
        if not len(keys):
            return valid, np.zeros(0, np.int64)
        return valid, self._elements_of(keys, self._buckets(column))

    def _elements_of(self, keys: Rows, buckets: NDArray[np.int64]) -> Rows:
        elements = self._elements.rows(self._elements.placed(self._vectors[0], keys), pa.array(buckets))
        self._counts.extend(np.zeros(len(self._elements) - self._counts.length, dtype=np.int64))
        return elements

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        valid, elements = self._taken(keys, column)
        np.add.at(self._counts.values, elements, 1)
        np.add.at(self._vectors[1], keys if valid is None else keys[valid], 1)

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        """Take the rows one after the other: the quantiles of a key move from bucket to bucket as values come."""
        valid, elements = self._taken(segments.keys, column)
        owners, buckets, element_order, _ = self._by_bucket(segments.distinct)
        place_of = np.empty(len(self._elements), dtype=np.int64)
        place_of[element_order] = np.arange(len(element_order))
        starts = np.searchsorted(owners, np.arange(len(segments.distinct))).tolist()
        owner_of_row = np.empty(len(segments.keys), dtype=np.int64)
        owner_of_row[segments.order] = np.repeat(np.arange(len(segments.distinct)), segments.counts)
        counts = self._counts.values[element_order].tolist()
        totals = self._vectors[1][segments.distinct].tolist()
        shares = self.aggregate.shares
        cursors = [[[start, 0] for _ in shares] for start in starts]  # a bucket, and how many values come before it
        places = place_of[elements].tolist()
        rows = np.full(len(segments.keys), -1, dtype=np.int64)
        rows[slice(None) if valid is None else valid] = np.arange(len(places))
        at: list[list[int]] = [[] for _ in shares]
        for row, owner in zip(rows.tolist(), owner_of_row.tolist(), strict=True):  # hot
            place = places[row] if row >= 0 else -1
            if row >= 0:
                totals[owner] += 1
                counts[place] += 1
            total = totals[owner]
            for share, cursor, found in zip(shares, cursors[owner], at, strict=True):
                here, below = cursor
                if row >= 0 and place < here:
                    below += 1
                target = int(share * (total - 1))
                if total:
                    while target < below:
                        here -= 1
                        below -= counts[here]
                    while target >= below + counts[here]:
                        below += counts[here]
                        here += 1
                cursor[0], cursor[1] = here, below
                found.append(here if total else -1)
        np.add.at(self._counts.values, elements, 1)
        self._vectors[1][segments.distinct] = totals
        found_at = np.array(at, dtype=np.int64).T
        missing = found_at[:, 0] < 0
        values = np.append(buckets, 0)
        return self._results(values[found_at], missing)

    def _by_bucket(self, keys: Rows) -> tuple[Rows, NDArray[np.int64], Rows, NDArray[np.int64]]:
        """Return the buckets of some keys in order: positions of keys, buckets, elements; and how many a key has."""
        owners, elements = self._elements.of(self._vectors[0][keys])
        buckets = self._elements.values(elements).to_numpy()
        order = np.lexsort((buckets, owners))
        return owners[order], buckets[order], elements[order], np.bincount(owners, minlength=len(keys))

    def results(self, keys: Rows) -> pa.Array:
        _, buckets, elements, _ = self._by_bucket(keys)
        totals = self._vectors[1][keys]
        up_to = np.cumsum(self._counts.values[elements])
        before = np.cumsum(totals) - totals
        shares = np.array(self.aggregate.shares, dtype=np.float64)
        missing = totals == 0
        wanted = np.floor(shares[None, :] * np.maximum(totals - 1, 0)[:, None]).astype(np.int64) + before[:, None]
        at = np.searchsorted(up_to, np.where(missing[:, None], 0, wanted), side="right")
        return self._results(np.append(buckets, 0)[np.where(missing[:, None], len(buckets), at)], missing)

    def _results(self, buckets: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.Array:
        magnitudes = np.where(buckets < 0, -buckets - 1, buckets) << (52 - sketches.BITS_KEPT)
        numbers = magnitudes.view(np.float64)
        numbers = np.where(buckets < 0, -numbers, numbers)
        if not self.aggregate.is_several:
            return pa.array(numbers[:, 0], self.result_type, mask=missing)
        ends = np.append(0, np.cumsum(~missing) * numbers.shape[1]).astype(np.int32)
        offsets = pa.array(ends, mask=np.append(missing, False))
        return pa.ListArray.from_arrays(offsets, pa.array(numbers[~missing].reshape(-1))).cast(self.result_type)

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        _, buckets, elements, sizes = self._by_bucket(keys)
        numbers = buckets.astype("<i4").tobytes()
        counts = self._counts.values[elements].astype("<i8").tobytes()
        found, first = [], 0
        for total, size in zip(self._vectors[1][keys].tolist(), sizes.tolist(), strict=True):
            end = first + size
            found.append((total, numbers[4 * first : 4 * end] + counts[8 * first : 8 * end]))
            first = end
        return found

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        self.reset(keys)
        sizes = [len(data) // 12 for _, data in accumulators]
        numbers = b"".join(data[: 4 * size] for (_, data), size in zip(accumulators, sizes, strict=True))
        counts = b"".join(data[4 * size :] for (_, data), size in zip(accumulators, sizes, strict=True))
        if numbers:
            buckets = np.frombuffer(numbers, dtype="<i4").astype(np.int64)
            elements = self._elements_of(np.repeat(keys, sizes), buckets)
            self._counts.values[elements] = np.frombuffer(counts, dtype="<i8")
        self._vectors[1][keys] = [total for total, _ in accumulators]


_PAGE = 64  # registers that are kept together
_PAGES = sketches.REGISTERS // _PAGE
_SHARES = np.int64(1) << (sketches.TOP_RANK - np.arange(sketches.TOP_RANK + 1, dtype=np.int64))
_PART = 512  # keys whose registers are laid out one beside the other


class ApproxDistinctKernel(Kernel):
    """Counts about the distinct values of each key. Registers are in pages, which a key gets when it uses them.

    The vectors are by how much the registers of a key are filled, how many are in use, and the key's place.
    """

    can_be_put_back = False

    def __init__(self, aggregate: ColumnAggregate, result_type: pa.DataType, kind: pa.DataType) -> None:
        super().__init__(aggregate, result_type)
        self._vectors = [np.zeros(_FIRST_KEYS, dtype=np.int64) for _ in range(3)]
        self._values = ValuesOfRows(kind)
        self._clear()

    def _clear(self) -> None:
        self._pages = np.zeros((1, _PAGES), dtype=np.int32)  # the pages of each place; place 0 is that of no rows
        self._registers = np.zeros((1, _PAGE), dtype=np.uint8)  # by page; page 0 is empty
        self._place_count = self._page_count = 1

    def _cells(self, keys: Rows, registers: NDArray[np.int64]) -> Rows:
        """Return where the registers of keys are; pages that are not there yet are added."""
        places = self._vectors[2]
        found = places[keys]
        if (found == 0).any():
            new = np.unique(keys[found == 0])
            places[new] = np.arange(self._place_count, self._place_count + len(new))
            self._place_count += len(new)
            self._pages = _grown(self._pages, self._place_count)
            found = places[keys]
        at = found * _PAGES + registers // _PAGE
        pages = self._pages.reshape(-1)[at]
        if (pages == 0).any():
            missing = np.unique(at[pages == 0])
            numbers = np.arange(self._page_count, self._page_count + len(missing), dtype=np.int32)
            self._pages.reshape(-1)[missing] = numbers
            self._page_count += len(missing)
            self._registers = _grown(self._registers, self._page_count)
            pages = self._pages.reshape(-1)[at]
        cells: Rows = pages.astype(np.int64) * _PAGE + registers % _PAGE
        return cells

    def _ranked(self, column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the register and the rank of each value of a column without nulls."""
        hashes = hashes_of(column, self._values)
        bits = 64 - (sketches.REGISTERS.bit_length() - 1)
        rest = (hashes & np.uint64((1 << bits) - 1)).astype(np.float64)
        ranks = np.minimum(bits + 1 - np.frexp(rest)[1], sketches.TOP_RANK).astype(np.uint8)
        return (hashes >> np.uint64(bits)).astype(np.int64), ranks

    def _raises(self, keys: Rows, column: pa.Array | None) -> tuple[Rows, Rows, NDArray[np.uint8]]:
        """Return the rows of a batch whose rank is above what their register had before, their cells and ranks."""
        assert column is not None
        valid = _is_valid(column)
        rows = np.arange(len(keys)) if valid is None else np.flatnonzero(valid)
        if not len(rows):
            return rows, rows, rows.astype(np.uint8)
        registers, ranks = self._ranked(column if valid is None else column.drop_null())
        cells = self._cells(keys[rows], registers)
        above = np.flatnonzero(ranks > self._registers.reshape(-1)[cells])
        return rows[above], cells[above], ranks[above]

    def update(self, keys: Rows, column: pa.Array | None) -> None:
        rows, cells, ranks = self._raises(keys, column)
        if not len(rows):
            return
        changed, firsts = np.unique(cells, return_index=True)
        registers = self._registers.reshape(-1)
        before = registers[changed]
        np.maximum.at(registers, cells, ranks)
        owners = keys[rows[firsts]]
        np.add.at(self._vectors[0], owners, _SHARES[before] - _SHARES[registers[changed]])
        np.add.at(self._vectors[1], owners, (before == 0).astype(np.int64))

    def running(self, segments: Segments, column: pa.Array | None) -> pa.Array:
        rows, cells, ranks = self._raises(segments.keys, column)
        filled, used = (np.zeros(len(segments.keys), dtype=np.int64) for _ in range(2))
        if len(rows):
            by_cell = Segments(cells)
            registers = self._registers.reshape(-1)
            known = registers[by_cell.distinct]
            ranked = accumulated(np.maximum, ranks[by_cell.order], by_cell, known)
            before = np.empty_like(ranked)
            before[1:] = ranked[:-1]
            before[by_cell.starts] = known
            registers[by_cell.distinct] = ranked[by_cell.starts + by_cell.counts - 1]
            filled[rows[by_cell.order]] = _SHARES[before] - _SHARES[ranked]
            used[rows[by_cell.order]] = before == 0
        results = []
        for vector, added in ((self._vectors[0], filled), (self._vectors[1], used)):
            in_order = _totals(added[segments.order], segments, vector[segments.distinct])
            vector[segments.distinct] = in_order[segments.starts + segments.counts - 1]
            results.append(segments.scattered(in_order))
        return pa.array(_estimates(*results))

    def results(self, keys: Rows) -> pa.Array:
        return pa.array(_estimates(self._vectors[0][keys], self._vectors[1][keys]))

    def _laid_out(self, keys: Rows) -> NDArray[np.uint8]:
        """Return all registers of some keys, a row for each key."""
        pages: NDArray[np.uint8] = self._registers[self._pages[self._vectors[2][keys]]]
        return pages.reshape(len(keys), sketches.REGISTERS)

    def accumulators(self, keys: Rows) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for first in range(0, len(keys), _PART):
            part = keys[first : first + _PART]
            filled, used = self._vectors[0][part].tolist(), self._vectors[1][part].tolist()
            registers = self._laid_out(part)
            owners, at = np.nonzero(registers)
            entries = (at << sketches.RANK_BITS | registers[owners, at]).astype(">u4").view(np.uint8)
            triples = entries.reshape(-1, 4)[:, 1:].tobytes()
            end = 0
            for number, (fill, use) in enumerate(zip(filled, used, strict=True)):
                start, end = end, end + 3 * use
                sparse = use <= sketches.MOST_SPARSE
                found.append((fill, use, triples[start:end] if sparse else registers[number].tobytes()))
        return found

    def load(self, keys: Rows, accumulators: Sequence[tuple[Any, ...]]) -> None:
        self.reset(keys)
        owners, entries = [], []
        for key, (_, used, data) in zip(keys.tolist(), accumulators, strict=True):
            if len(data) == sketches.REGISTERS:
                registers = np.frombuffer(data, dtype=np.uint8).astype(np.int64)
                at = np.flatnonzero(registers)
                entries.append(at << sketches.RANK_BITS | registers[at])
            elif used:
                triples = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3).astype(np.int64)
                entries.append(triples[:, 0] << 16 | triples[:, 1] << 8 | triples[:, 2])
            else:
                continue
            owners.append(np.full(used, key, dtype=np.int64))
        if entries:
            entry = np.concatenate(entries)
            cells = self._cells(np.concatenate(owners), entry >> sketches.RANK_BITS)
            self._registers.reshape(-1)[cells] = entry & (1 << sketches.RANK_BITS) - 1
        self._vectors[0][keys] = [filled for filled, _, _ in accumulators]
        self._vectors[1][keys] = [used for _, used, _ in accumulators]

    def reset(self, keys: Rows) -> None:
        places = self._vectors[2][keys]
        self._registers[self._pages[places[places > 0]].reshape(-1)] = 0  # the pages stay with the key
        for vector in self._vectors[:2]:
            vector[keys] = 0

    def keep(self, keys: Rows) -> None:
        super().keep(keys)
        places = self._vectors[2]
        there = np.flatnonzero(places)
        pages = self._pages[places[there]]
        used = np.flatnonzero(np.bincount(pages.reshape(-1), minlength=1)[1:]) + 1 if len(there) else there
        registers = self._registers[used]
        number_of = np.zeros(int(pages.max(initial=0)) + 1, dtype=np.int32)
        number_of[used] = np.arange(1, len(used) + 1)
        self._clear()
        self._place_count, self._page_count = 1 + len(there), 1 + len(used)
        self._pages = np.concatenate([self._pages, number_of[pages].reshape(-1, _PAGES)])
        self._registers = np.concatenate([self._registers, registers])
        places[there] = np.arange(1, len(there) + 1)

    def frozen(self) -> Kernel:
        copy = super().frozen()
        assert isinstance(copy, ApproxDistinctKernel)
        copy._pages, copy._registers = self._pages.copy(), self._registers.copy()
        return copy

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + self._pages.nbytes + self._registers.nbytes


def _grown(matrix: NDArray[Any], rows: int) -> NDArray[Any]:
    if rows <= len(matrix):
        return matrix
    grown = np.zeros((max(rows, len(matrix) * 5 // 4), matrix.shape[1]), dtype=matrix.dtype)
    grown[: len(matrix)] = matrix
    return grown


def _estimates(filled: NDArray[np.int64], used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `sketches.estimate` of many keys: the same operations on the same tables, in the same order."""
    by_empty = np.array(sketches.estimates_by_empty(), dtype=np.int64)
    most = len(by_empty) - 1
    found = by_empty[np.minimum(used, most)]
    full = np.flatnonzero(used > most)
    if len(full):
        fills, counts = map(np.array, sketches.estimates_by_fill())
        whole = sketches.REGISTERS * (1 << sketches.TOP_RANK)
        left = (whole - filled[full]).astype(np.float64) / float(whole)
        at = np.clip(np.searchsorted(fills, left), 1, len(fills) - 1)
        share = (left - fills[at - 1]) / (fills[at] - fills[at - 1])
        found[full] = np.rint(counts[at - 1] + share * (counts[at] - counts[at - 1])).astype(np.int64)
    return found
