"""The operators that take records one by one, or a partition as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from tamias.batch.plan.specs import InputSplit
from tamias.batch.tasks.task_operator import TaskOperator, method, results_of
from tamias.types.type_information import TypeInformation

__all__ = [
    "FilterRecords",
    "FlatMapRecords",
    "MapPartition",
    "MapRecords",
    "ProjectFields",
    "ReadSplits",
    "TypeCheck",
]

_CHECKED_RECORDS = 1000


class FunctionOperator(TaskOperator):
    """An operator with one function of the user."""

    def __init__(self, name: str, function: Any, parameters: Mapping[str, str] | None = None) -> None:
        super().__init__(name, function, parameters=parameters)
        self.function = function


class ReadSplits(TaskOperator):
    """Reads the splits of a source, which are its input."""

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        return chain.from_iterable(map(_read, records))


def _read(split: InputSplit) -> Iterator[Any]:
    return split.read()


class MapRecords(FunctionOperator):
    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        function = method(self.function, "map")
        for record in records:  # hot
            yield function(record)


class FlatMapRecords(FunctionOperator):
    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        function = method(self.function, "flat_map")
        for record in islice(records, 1):  # a function that returns one value does so for every record
            yield from results_of(function(record))
        for record in records:  # hot
            results = function(record)
            if results is not None:
                yield from results


class FilterRecords(FunctionOperator):
    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        function = method(self.function, "filter")
        for record in records:  # hot
            if function(record):
                yield record


class MapPartition(FunctionOperator):
    """Calls its function once for each partition, also for an empty one."""

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        yield from results_of(method(self.function, "map_partition")(records))


class ProjectFields(TaskOperator):
    """Makes tuples of some fields."""

    def __init__(self, name: str, positions: tuple[int, ...]) -> None:
        super().__init__(name)
        self.positions = positions

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        if len(self.positions) == 1:
            position = self.positions[0]
            for record in records:  # hot
                yield (record[position],)
        else:
            project = itemgetter(*self.positions)
            for record in records:  # hot
                yield project(record)


class TypeCheck(TaskOperator):
    """Checks and converts records to the type that the program declared for an operator."""

    def __init__(self, name: str, type_info: TypeInformation) -> None:
        super().__init__(name)
        self.type_info = type_info

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        while run := list(islice(records, _CHECKED_RECORDS)):
            yield from self.type_info.conform(run)
