"""The operators over groups: reduce, group reduce and combine, distinct, first.

Before a shuffle an operator combines what is in its partition, in bounded memory. After it the groups of a partition
are complete: reduces keep one record for each key, functions over groups get a sorted stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from ekorn.batch.plan.data_set_specs import SortField
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.tasks.blobs import in_chunks
from ekorn.batch.tasks.exits import holds_none, refuse_none
from ekorn.batch.tasks.folds import fold_of
from ekorn.batch.tasks.kept_records import HashedFiles, KeyTable, add_to, emptied, new_table, used_memory_mb
from ekorn.batch.tasks.record_operators import FunctionOperator
from ekorn.batch.tasks.sorting import SortedBy, Sorter, streamed_groups
from ekorn.batch.tasks.task_operator import TaskOperator, method, results_of

__all__ = [
    "CombineBeforeShuffle",
    "CombineGroups",
    "CombineReduce",
    "FirstInPartition",
    "FirstOfGroups",
    "FirstRecords",
    "GroupReduce",
    "KeyedReduce",
    "WholeGroupReduce",
    "WholeReduce",
]

_COMBINED_KEYS = 200_000  # the number of keys at which a combiner sends its results
_COMBINED_RECORDS = 100_000
_HARDLY_COMBINED = 0.9  # a combiner hardly combines if this share of its records comes out
_PASSED_ON = 2_000_000  # how many records pass uncombined after records that hardly combined
_RECORDS_PER_COMBINE = 500_000  # the most records of one combine before a shuffle, unless the memory is full earlier


class WholeReduce(FunctionOperator):
    """Reduces all records of a partition to one."""

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        function = method(self.function, "reduce")
        for first in islice(records, 1):
            result = first
            for record in records:  # hot
                result = function(result, record)
            yield result


class CombineReduce(FunctionOperator):
    """Reduces the records of each key in a partition, before a shuffle."""

    def __init__(self, name: str, function: Any, keys: Keys, parameters: Mapping[str, str]) -> None:
        super().__init__(name, function, parameters)
        self.keys = keys

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        fold = fold_of(self.function)
        for chunk in in_chunks(records):
            fold.add(self.keys.of(chunk), chunk)
            if len(fold) > _COMBINED_KEYS:
                yield from fold.taken().values()
        yield from fold.taken().values()


class KeyedReduce(CombineReduce):
    """Reduces the records of each key, all of which are in this partition. Goes to disk if the keys are too many.

    With `checks_keys` it refuses None as a key; a shuffle by the keys has done so already.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        keys: Keys,
        parameters: Mapping[str, str],
        *,
        memory_mb: int,
        checks_keys: bool,
    ) -> None:
        super().__init__(name, function, keys, parameters)
        self.memory_mb = memory_mb
        self.checks_keys = checks_keys

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        fold = fold_of(self.function)
        chunks = in_chunks(records)
        for chunk in chunks:
            fold.add(self.keys.of(chunk), chunk)
            if used_memory_mb() > self.memory_mb:
                yield from self._reduce_on_disk(fold.taken(), chunks)
                return
        results = fold.taken()
        if self.checks_keys:
            for key, record in results.items():  # noqa: B007 - `user_error` shows the record
                refuse_none(key)
        yield from results.values()

    def _reduce_on_disk(self, results: dict[Any, Any], chunks: Iterator[list[Any]]) -> Iterator[Any]:
        from pyspark.shuffle import Aggregator, ExternalMerger

        function = method(self.function, "reduce")
        merger = ExternalMerger(Aggregator(lambda record: record, function, function), self.memory_mb)
        merger.mergeCombiners(results.items())
        results.clear()
        for chunk in chunks:
            merger.mergeCombiners(zip(self.keys.of(chunk), chunk, strict=True))
        for key, record in merger.items():
            if self.checks_keys:
                refuse_none(key)
            yield record


class WholeGroupReduce(FunctionOperator):
    """Calls a function with all records of a partition, unless there are none."""

    def __init__(self, name: str, function: Any, parameters: Mapping[str, str], method_name: str = "reduce") -> None:
        super().__init__(name, function, parameters)
        self.method_name = method_name

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        for first in islice(records, 1):
            yield from results_of(method(self.function, self.method_name)(_with_first(first, records)))


class GroupReduce(FunctionOperator):
    """Calls a function with the stream of each group, sorted if asked for."""

    def __init__(
        self,
        name: str,
        function: Any,
        keys: Keys,
        sort: tuple[SortField, ...],
        *,
        parameters: Mapping[str, str],
        memory_mb: int,
    ) -> None:
        super().__init__(name, function, parameters)
        self.keys = keys
        self.sort = sort
        self.memory_mb = memory_mb

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        function = method(self.function, "reduce")
        groups = self._sorted(records) if self.sort else self._in_table(records)
        for key, group in groups:
            if holds_none(key):
                record = next(group)  # noqa: F841 - `user_error` shows the record
                refuse_none(key)
            returned = function(group)
            yield from returned if returned.__class__ is list else results_of(returned)

    def _in_table(self, records: Iterator[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
        """Yield the groups from a table, which is less work than sorting.

        Records that exceed the memory go to files.
        """
        table = new_table()
        chunks = in_chunks(records)
        for chunk in chunks:
            add_to(table, self.keys, chunk)
            if used_memory_mb() > self.memory_mb:
                yield from self._from_files(table, chunks)
                return
        for key, group in table.items():
            yield key, iter(group)

    def _from_files(self, table: KeyTable, chunks: Iterator[list[Any]]) -> Iterator[tuple[Any, Iterator[Any]]]:
        """Yield the groups of a full table and of the chunks after it, from a table for each part of the keys."""
        files = HashedFiles(self.keys, self.memory_mb)
        for chunk in chain(in_chunks(emptied(table)), chunks):
            files.add(chunk)
        limit_mb = max(self.memory_mb, used_memory_mb() * 1.05)  # Python may keep freed memory
        for part in files.parts():
            for chunk in part:
                add_to(table, self.keys, chunk)
                if used_memory_mb() > limit_mb:  # a group may be larger than the memory
                    yield from self._sorted(chain(emptied(table), chain.from_iterable(part)))
            for key, group in table.items():
                yield key, iter(group)
            table.clear()

    def _sorted(self, records: Iterator[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
        ordered = Sorter(SortedBy(self.keys, self.sort), self.memory_mb).add_all(records).sorted()
        return streamed_groups(ordered, self.keys)


class CombineGroups(FunctionOperator):
    """Calls a function with the records of each key that came to this partition, some at a time."""

    def __init__(
        self,
        name: str,
        function: Any,
        keys: Keys,
        sort: tuple[SortField, ...],
        *,
        parameters: Mapping[str, str],
        method_name: str = "combine",
    ) -> None:
        super().__init__(name, function, parameters)
        self.keys = keys
        self.sort = SortedBy(None, sort) if sort else None
        self.method_name = method_name

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        groups = new_table()
        count = 0
        for chunk in in_chunks(records):
            add_to(groups, self.keys, chunk)
            count += len(chunk)
            if count >= _COMBINED_RECORDS:
                yield from self.combined(groups)
                groups.clear()
                count = 0
        yield from self.combined(groups)

    def combined(self, groups: KeyTable) -> Iterator[Any]:
        """Yield what the function makes of each group."""
        function = method(self.function, self.method_name)
        sort = self.sort
        for key, group in groups.items():  # hot  # noqa: B007 - `user_error` shows the key
            returned = function(iter(group if sort is None else sort.sort(group)))
            yield from returned if returned.__class__ is list else results_of(returned)


class CombineBeforeShuffle(CombineGroups):
    """Calls a combiner with records of each key, and with its results again, so that few records leave the partition.

    A record alone is passed on as it is: a combiner may be left out.
    """

    def __init__(self, *arguments: Any, memory_mb: int, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.memory_mb = memory_mb

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        groups = new_table()
        kept = added = 0  # the numbers of combined results and of new records in the table
        limit_mb: float = self.memory_mb
        chunks = in_chunks(records)
        for chunk in chunks:
            add_to(groups, self.keys, chunk)
            added += len(chunk)
            is_full = used_memory_mb() > limit_mb
            if added < _RECORDS_PER_COMBINE and not is_full:
                continue
            results = list(self._results(groups))
            groups = new_table()
            if is_full or len(results) > _COMBINED_KEYS:
                yield from results
                if len(results) > _HARDLY_COMBINED * (kept + added):
                    yield from _some(chunks)  # few keys repeat so soon; combining is tried again later
                kept = 0
            else:
                add_to(groups, self.keys, results)
                kept = len(results)
            added = 0
            if is_full:  # Python may keep freed memory, so the next records leave when the use grows again
                limit_mb = max(self.memory_mb, used_memory_mb() * 1.05)
        yield from self._results(groups)

    def _results(self, groups: KeyTable) -> Iterator[Any]:
        """Yield the records that are alone, and what the combiner makes of the others."""
        function = method(self.function, self.method_name)
        sort = self.sort
        for key, group in groups.items():  # hot  # noqa: B007 - `user_error` shows the key
            if len(group) == 1:
                yield group[0]
                continue
            returned = function(iter(group if sort is None else sort.sort(group)))
            yield from returned if returned.__class__ is list else results_of(returned)


class FirstRecords(TaskOperator):
    """Keeps the first records of a partition. All are read, so that the functions before it see all records."""

    goes_by_order = True

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name)
        self.count = count

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        yield from islice(records, self.count)
        for _ in records:
            pass


class FirstInPartition(TaskOperator):
    """Keeps some records of each key of a partition, before a shuffle. It may keep more than asked for."""

    goes_by_order = True

    def __init__(self, name: str, count: int, keys: Keys) -> None:
        super().__init__(name)
        self.count = count
        self.keys = keys

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        counts: dict[Any, int] = {}
        for chunk in in_chunks(records):
            for key, record in zip(self.keys.of(chunk), chunk, strict=True):  # hot
                seen = counts.get(key, 0)
                if seen < self.count:
                    counts[key] = seen + 1
                    yield record
            if len(counts) > _COMBINED_KEYS:
                counts.clear()


class FirstOfGroups(TaskOperator):
    """Keeps the first records of each group."""

    goes_by_order = True

    def __init__(self, name: str, count: int, keys: Keys, sort: tuple[SortField, ...], memory_mb: int) -> None:
        super().__init__(name)
        self.count = count
        self.keys = keys
        self.sort = sort
        self.memory_mb = memory_mb

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        ordered = Sorter(SortedBy(self.keys, self.sort), self.memory_mb).add_all(records).sorted()
        for key, group in streamed_groups(ordered, self.keys):
            if holds_none(key):
                record = next(group)  # noqa: F841 - `user_error` shows the record
                refuse_none(key)
            yield from islice(group, self.count)


def _with_first(first: Any, records: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from records


def _some(chunks: Iterator[list[Any]]) -> Iterator[Any]:
    """Yield the records that pass a combiner by."""
    passed = 0
    for chunk in chunks:
        yield from chunk
        passed += len(chunk)
        if passed >= _PASSED_ON:
            return
