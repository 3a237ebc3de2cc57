"""The operators of a superstep that use resident tables. Partition p of a flow uses partition p of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

from ekorn.batch.plan.data_set_specs import SortField
from ekorn.batch.plan.iteration_specs import WriteTarget
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.tasks.blobs import BlobSize
from ekorn.batch.tasks.exits import holds_none
from ekorn.batch.tasks.record_operators import FunctionOperator
from ekorn.batch.tasks.sorting import SortedBy, Sorter, streamed_groups
from ekorn.batch.tasks.task_operator import TaskOperator, method, results_of
from ekorn.engine.spark.task_side.table_access import TableAccess
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.slot_protocol.table_messages import NamedWrite, TablePartition
from ekorn.types.by_value import dumps

__all__ = ["SearchedTable", "TableCoGroup", "TableJoin", "TableSplit", "WriteTables", "Written"]

_RECORDS_PER_LOOK_UP = 1000


class Written(NamedTuple):
    """What a task wrote, for the driver to commit."""

    writes: tuple[NamedWrite, ...]
    record_count: int


@dataclass(frozen=True)
class TableSplit:
    """Reads one partition of a table as a part of a source."""

    access: TableAccess
    target: TablePartition

    def read(self) -> Iterator[Any]:
        """Yield the elements."""
        return self.access.read(self.target)


@dataclass(frozen=True)
class SearchedTable:
    """A table in which an operator looks up elements.

    Attributes:
        access: The slots that hold it.
        table: Its number.
        keys: The keys of the operator's records, by which elements are found.
        is_first: Whether elements are the first argument of the function.
    """

    access: TableAccess
    table: int
    keys: Keys
    is_first: bool


class TableOperator(FunctionOperator):
    """An operator that looks up elements by key."""

    def __init__(self, name: str, function: Any, parameters: Mapping[str, str], searched: SearchedTable) -> None:
        super().__init__(name, function, parameters)
        self.searched = searched
        self.target = TablePartition(searched.table, 0)

    def open(self, context: RuntimeContext) -> None:
        self.target = TablePartition(self.searched.table, context.get_index_of_this_subtask())
        super().open(context)


class TableJoin(TableOperator):
    """Joins each record with the elements of its key.

    Args:
        name: The name that errors show.
        function: The join function; None makes a tuple.
        parameters: What `with_parameters` gave.
        searched: The table.
        keeps_unmatched: Whether a record without an element is joined with None.
        flat: Whether the function returns any number of results.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        parameters: Mapping[str, str],
        searched: SearchedTable,
        *,
        keeps_unmatched: bool,
        flat: bool,
    ) -> None:
        super().__init__(name, function, parameters, searched)
        self.keeps_unmatched = keeps_unmatched
        self.flat = flat

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        join = _pair if self.function is None else method(self.function, "join")
        if self.searched.is_first:
            join = _swapped(join)
        return self._flat(join, records) if self.flat else self._single(join, records)

    def _single(self, join: Callable[[Any, Any], Any], records: Iterator[Any]) -> Iterator[Any]:
        for chunk, found in self._looked_up(records):
            for record, elements in zip(chunk, found, strict=True):  # hot
                for element in elements:
                    yield join(record, element)

    def _flat(self, join: Callable[[Any, Any], Any], records: Iterator[Any]) -> Iterator[Any]:
        called = _checked(join)
        for chunk, found in self._looked_up(records):
            for record, elements in zip(chunk, found, strict=True):  # hot
                for element in elements:
                    results = called(record, element)
                    if results is not None:
                        yield from results
            if any(found):
                called = join  # a function that returns one value does so for every pair

    def _looked_up(self, records: Iterator[Any]) -> Iterator[tuple[list[Any], list[Sequence[Any]]]]:
        """Yield some records at a time, and the elements of each."""
        searched = self.searched
        while chunk := list(islice(records, _RECORDS_PER_LOOK_UP)):
            found = searched.access.look_up(self.target, list(searched.keys.of(chunk)))
            yield chunk, [elements or (None,) for elements in found] if self.keeps_unmatched else found


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    return first, second


def _checked(join: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda record, element: results_of(join(record, element))


def _swapped(join: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda record, element: join(element, record)


class TableCoGroup(TableOperator):
    """Calls a function with each group and the elements of its key.

    Args:
        name: The name that errors show.
        function: The co-group function.
        parameters: What `with_parameters` gave.
        searched: The table.
        sort: The order of records in a group.
        memory_mb: What the task may use before it sorts on disk.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        parameters: Mapping[str, str],
        searched: SearchedTable,
        *,
        sort: tuple[SortField, ...],
        memory_mb: int,
    ) -> None:
        super().__init__(name, function, parameters, searched)
        self.sort = sort
        self.memory_mb = memory_mb

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        keys = self.searched.keys
        ordered = Sorter(SortedBy(keys, self.sort), self.memory_mb).add_all(records).sorted()
        waiting: list[tuple[Any, Iterable[Any]]] = []  # small groups, which are looked up together
        waiting_records = 0
        for key, group in streamed_groups(ordered, keys):
            head = list(islice(group, _RECORDS_PER_LOOK_UP))
            if len(head) == _RECORDS_PER_LOOK_UP:
                yield from self._applied([(key, chain(head, group))])
                continue
            waiting.append((key, head))
            waiting_records += len(head)
            if waiting_records >= _RECORDS_PER_LOOK_UP:
                yield from self._applied(waiting)
                waiting, waiting_records = [], 0
        if waiting:
            yield from self._applied(waiting)

    def _applied(self, groups: list[tuple[Any, Iterable[Any]]]) -> Iterator[Any]:
        function = method(self.function, "co_group")
        found = self.searched.access.look_up(self.target, [key for key, _ in groups])
        for (key, group), elements in zip(groups, found, strict=True):  # noqa: B007 - `user_error` shows the key
            sides = (iter(elements), iter(group)) if self.searched.is_first else (iter(group), iter(elements))
            yield from results_of(function(*sides))


class WriteTables(TaskOperator):
    """Writes all records to tables, then yields what it wrote. Nothing is visible before the driver's commit."""

    def __init__(self, name: str, access: TableAccess, targets: tuple[WriteTarget, ...]) -> None:
        super().__init__(name)
        self.access = access
        self.targets = targets
        self.partition = 0

    def open(self, context: RuntimeContext) -> None:
        self.partition = context.get_index_of_this_subtask()

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        writes = tuple(self.access.new_write(TablePartition(each.table, self.partition)) for each in self.targets)
        size = BlobSize()
        count = 0
        for chunk in size.chunks(records):
            count += len(chunk)
            for target, write in zip(self.targets, writes, strict=True):
                self.access.write_part(write, _part(target, chunk))
        yield Written(writes, count)


def _part(target: WriteTarget, chunk: list[Any]) -> bytes:
    if target.keys is None:
        return dumps(chunk)
    keys = list(target.keys.of(chunk))
    if target.drops_none and any(map(holds_none, keys)):
        kept = [(key, record) for key, record in zip(keys, chunk, strict=True) if not holds_none(key)]
        keys, chunk = [key for key, _ in kept], [record for _, record in kept]
    return dumps((keys, chunk))
