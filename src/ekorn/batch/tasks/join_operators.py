"""Joins, co-groups and crosses in a task.

Records with equal keys of both inputs are in one task, or one input is there whole. A join keeps one input in a table
and reads the other through it. If the table does not fit, or if the program asks for it, both inputs are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

from ekorn.batch.plan.data_set_specs import CoGroupSpec, JoinKind, JoinSpec
from ekorn.batch.tasks.blobs import BlobSize, in_chunks
from ekorn.batch.tasks.exits import holds_none, refuse_none
from ekorn.batch.tasks.kept_records import KeyTable, add_to, emptied, new_table, used_memory_mb
from ekorn.batch.tasks.record_operators import FunctionOperator
from ekorn.batch.tasks.sorting import Member, SortedBy, Sorter, members
from ekorn.batch.tasks.task_operator import method, results_of

__all__ = ["BroadcastCross", "BroadcastJoin", "HashJoin", "SortMergeCoGroup", "SortMergeJoin"]

Pair = tuple[Any, Any]


class Join(FunctionOperator):
    """What all joins share: the call of the function. A subclass finds the pairs.

    Args:
        name: The operator.
        spec: The join.
        parameters: What `with_parameters` gave.
        builds_second: Whether the second input is the one in the table.
        memory_mb: The memory that a Python worker may use.
    """

    def __init__(
        self, name: str, spec: JoinSpec, parameters: Mapping[str, str], *, builds_second: bool, memory_mb: int
    ) -> None:
        super().__init__(name, spec.function, parameters)
        self.flat = spec.flat
        self.builds_second = builds_second
        self.memory_mb = memory_mb
        self.built_keys, self.probed_keys = _built_first(builds_second, spec.first_keys, spec.second_keys)
        keeps = spec.kind in (JoinKind.LEFT, JoinKind.FULL), spec.kind in (JoinKind.RIGHT, JoinKind.FULL)
        self.keeps_built, self.keeps_probed = _built_first(builds_second, *keeps)

    def joined(self, pairs: Iterator[Pair]) -> Iterator[Any]:
        """Yield the results of the function for pairs of a record of the first and one of the second input."""
        if self.function is None:
            return pairs
        return self._flat_results(pairs) if self.flat else self._results(pairs)

    def _results(self, pairs: Iterator[Pair]) -> Iterator[Any]:
        function = method(self.function, "join")
        for record in pairs:  # hot
            yield function(*record)

    def _flat_results(self, pairs: Iterator[Pair]) -> Iterator[Any]:
        function = method(self.function, "join")
        for record in islice(pairs, 1):  # a function that returns one value does so for every pair
            yield from results_of(function(*record))
        for record in pairs:  # hot
            results = function(*record)
            if results is not None:
                yield from results

    def table(self, built: Iterable[list[Any]]) -> KeyTable:
        """Return records by key."""
        table = new_table()
        for chunk in built:
            add_to(table, self.built_keys, chunk)
        return table

    def probed(self, table: KeyTable, records: Iterator[Any]) -> Iterator[Pair]:
        """Yield all pairs of a table and the records of the other input, and those without a partner that are kept."""
        unmatched = [table.pop(key) for key in [key for key in table if holds_none(key)]]
        matched: set[Any] | None = set() if self.keeps_built else None
        keeps_probed, second_built = self.keeps_probed, self.builds_second
        for chunk in in_chunks(records):
            for key, record in zip(self.probed_keys.of(chunk), chunk, strict=True):  # hot
                found = table.get(key)
                if found is not None:
                    if matched is not None:
                        matched.add(key)
                    for other in found:
                        yield (record, other) if second_built else (other, record)
                elif keeps_probed:
                    yield (record, None) if second_built else (None, record)
        if matched is not None:
            unmatched += [records for key, records in table.items() if key not in matched]
            for record in chain.from_iterable(unmatched):
                yield (None, record) if second_built else (record, None)


class HashJoin(Join):
    """Keeps the first input that arrives in a table; sorts both inputs if it is too large.

    The planner lets the input for the table arrive first: it is the program's second input if `builds_second`.
    """

    def run_two(self, first: Iterator[Any], second: Iterator[Any]) -> Iterator[Any]:
        yield from self.joined(self._pairs(first, second))

    def _pairs(self, built: Iterator[Any], probed: Iterator[Any]) -> Iterator[Pair]:
        table = new_table()
        size = BlobSize()
        for chunk in size.chunks(built):
            add_to(table, self.built_keys, chunk)
            if used_memory_mb() > self.memory_mb:
                rest = chain(emptied(table), built)
                return merged_pairs(self, rest, probed)
        return self.probed(table, probed)


class SortMergeJoin(Join):
    """Sorts both inputs."""

    def run_two(self, first: Iterator[Any], second: Iterator[Any]) -> Iterator[Any]:
        yield from self.joined(merged_pairs(self, first, second))


class BroadcastJoin(Join):
    """Joins the records of a partition with an input that every task has whole: `shared["built"]`."""

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        table = self.table([self.shared["built"]])
        yield from self.joined(self.probed(table, records))


def merged_pairs(join: Join, built: Iterator[Any], probed: Iterator[Any]) -> Iterator[Pair]:
    """Yield the pairs of a join from sorted inputs. In memory are the records of one key, of the table's side alone."""
    for ours, theirs in _runs_together(
        sorted_members(built, SortedBy(join.built_keys), join.memory_mb),
        sorted_members(probed, SortedBy(join.probed_keys), join.memory_mb),
    ):
        table = new_table()
        for _, key, record in ours:
            table[key].append(record)
        yield from join.probed(table, (record for _, _, record in theirs))


class SortMergeCoGroup(FunctionOperator):
    """Calls a function with the two groups of each key that either input has."""

    def __init__(self, name: str, spec: CoGroupSpec, parameters: Mapping[str, str], memory_mb: int) -> None:
        super().__init__(name, spec.function, parameters)
        self.first = SortedBy(spec.first_keys, spec.first_sort)
        self.second = SortedBy(spec.second_keys, spec.second_sort)
        self.memory_mb = memory_mb

    def run_two(self, first: Iterator[Any], second: Iterator[Any]) -> Iterator[Any]:
        ours = sorted_members(first, self.first, self.memory_mb)
        theirs = sorted_members(second, self.second, self.memory_mb)
        function = method(self.function, "co_group")
        for one, other in _runs_together(ours, theirs):
            for key, left, right in _groups_of_runs(one, other):
                if holds_none(key):  # an input that a join has placed may contain None as a key
                    record = next(chain(left, right))  # noqa: F841 - `user_error` shows the record
                    refuse_none(key)
                yield from results_of(function(left, right))


class BroadcastCross(FunctionOperator):
    """Pairs each record with all records of an input that every task has whole: `shared["other"]`."""

    def __init__(self, name: str, function: Any, parameters: Mapping[str, str], *, other_is_first: bool) -> None:
        super().__init__(name, function, parameters)
        self.other_is_first = other_is_first

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        pairs = self._pairs(records)
        return pairs if self.function is None else self._results(pairs)

    def _pairs(self, records: Iterator[Any]) -> Iterator[Pair]:
        others = self.shared["other"]
        for record in records:
            for other in others:  # hot
                yield (other, record) if self.other_is_first else (record, other)

    def _results(self, pairs: Iterator[Pair]) -> Iterator[Any]:
        function = method(self.function, "cross")
        for record in pairs:  # hot
            yield function(*record)


# ---------------------------------------------------------------------------------- sorted inputs

Run = Iterator[Member]


def sorted_members(records: Iterator[Any], by: SortedBy, memory_mb: int) -> Iterator[Member]:
    """Return the records of an input sorted by the token of their key, each with token and key."""
    assert by.keys is not None
    return members(Sorter(by, memory_mb).add_all(records).sorted(), by.keys)


def _runs_together(first: Iterator[Member], second: Iterator[Member]) -> Iterator[tuple[Run, Run]]:
    """Yield the runs of equal tokens of two sorted inputs together; a token that one input lacks has an empty run."""
    ours, theirs = groupby(first, itemgetter(0)), groupby(second, itemgetter(0))
    one, other = next(ours, None), next(theirs, None)
    nothing: list[Member] = []
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None
            yield one[1], iter(nothing)
            one = next(ours, None)
        elif one is None or other[0] < one[0]:
            yield iter(nothing), other[1]
            other = next(theirs, None)
        else:
            yield one[1], other[1]
            one, other = next(ours, None), next(theirs, None)


def _groups_of_runs(first: Run, second: Run) -> Iterator[tuple[Any, Iterator[Any], Iterator[Any]]]:
    """Yield each key of two runs with its groups. They are streams, unless several keys share the token."""
    one, other = next(first, None), next(second, None)
    key = one[1] if one is not None else other[1] if other is not None else None
    others = (new_table(), new_table())
    if one is None or other is None or one[1] == other[1]:
        left = _with_key(key, () if one is None else (one,), first, others[0])
        right = _with_key(key, () if other is None else (other,), second, others[1])
        yield key, left, right
        _set_aside(key, first, others[0])
        _set_aside(key, second, others[1])
    else:
        _set_aside(_NO_KEY, chain((one,), first), others[0])
        _set_aside(_NO_KEY, chain((other,), second), others[1])
    for key in dict.fromkeys(chain(*others)):
        yield key, iter(others[0].get(key, ())), iter(others[1].get(key, ()))


_NO_KEY: Any = object()


def _with_key(key: Any, head: Iterable[Member], run: Run, others: KeyTable) -> Iterator[Any]:
    for member in chain(head, run):  # hot
        if member[1] == key:
            yield member[2]
        else:
            others[member[1]].append(member[2])


def _set_aside(key: Any, run: Iterable[Member], others: KeyTable) -> None:
    """Keep the records of other keys, and skip records of this key that its function has not read."""
    for member in run:
        if member[1] != key:
            others[member[1]].append(member[2])


def _built_first(builds_second: bool, first: Any, second: Any) -> tuple[Any, Any]:
    return (second, first) if builds_second else (first, second)
