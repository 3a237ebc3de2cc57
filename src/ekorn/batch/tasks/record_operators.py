"""The operators that take records one by one, or a partition as a whole, up to the one that writes to a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from ekorn.batch.outputs.output import Output, SinkSubtask, WriteResult
from ekorn.batch.plan.data_set_specs import InputSplit
from ekorn.batch.tasks.task_operator import TaskOperator, method, results_of
from ekorn.batch.tasks.task_reports import Records
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.types.type_information import TypeInformation

__all__ = [
    "FilterRecords",
    "FlatMapRecords",
    "MapPartition",
    "MapRecords",
    "ProjectFields",
    "ReadSplits",
    "RecordOperator",
    "TypeCheck",
    "WriteRecords",
]

_CHECKED_RECORDS = 1000


class FunctionOperator(TaskOperator):
    """An operator with one function of the user."""

    def __init__(self, name: str, function: Any, parameters: Mapping[str, str] | None = None) -> None:
        super().__init__(name, function, parameters=parameters)
        self.function = function


class ReadSplits(TaskOperator):
    """Reads the splits of a source, which are its input.

    Attributes:
        read: Counts the records.
    """

    def open(self, context: RuntimeContext) -> None:
        self.read = Records()
        super().open(context)

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        return self.read.counted(chain.from_iterable(map(_read, records)))


def _read(split: InputSplit) -> Iterator[Any]:
    return split.read()


class RecordOperator(TaskOperator):
    """An operator that takes records one by one. Neighbours of this kind are one loop: `fused_loop.py`.

    Attributes:
        kind: What a record becomes: one result ("map"), any number of them ("flat_map"), or itself or nothing
            ("filter").
    """

    kind = "map"

    def call(self) -> Callable[[Any], Any]:
        """Return the callable that takes each record."""
        raise AssertionError(f"{type(self).__name__} calls nothing")


class MapRecords(FunctionOperator, RecordOperator):
    def call(self) -> Callable[[Any], Any]:
        return method(self.function, "map")


class FlatMapRecords(FunctionOperator, RecordOperator):
    kind = "flat_map"

    def call(self) -> Callable[[Any], Any]:
        return method(self.function, "flat_map")


class FilterRecords(FunctionOperator, RecordOperator):
    kind = "filter"

    def call(self) -> Callable[[Any], Any]:
        return method(self.function, "filter")


class ProjectFields(RecordOperator):
    """Makes tuples of some fields."""

    def __init__(self, name: str, positions: tuple[int, ...]) -> None:
        super().__init__(name)
        self.positions = positions

    def call(self) -> Callable[[Any], Any]:
        if len(self.positions) > 1:
            return itemgetter(*self.positions)
        (position,) = self.positions
        return lambda record: (record[position],)


class MapPartition(FunctionOperator):
    """Calls its function once for each partition, also for an empty one."""

    goes_by_order = True

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        yield from results_of(method(self.function, "map_partition")(records))


class TypeCheck(TaskOperator):
    """Checks and converts records to the type that the program declared for an operator."""

    def __init__(self, name: str, type_info: TypeInformation) -> None:
        super().__init__(name)
        self.type_info = type_info

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        while run := list(islice(records, _CHECKED_RECORDS)):
            yield from self.type_info.conform(run)


class WriteRecords(TaskOperator):
    """Writes records to an output."""

    def __init__(self, name: str, output: Output) -> None:
        super().__init__(name)
        self._output = output
        self._subtask: SinkSubtask | None = None

    def open(self, context: RuntimeContext) -> None:
        super().open(context)
        self._subtask = SinkSubtask(
            context.get_index_of_this_subtask(),
            context.get_number_of_parallel_subtasks(),
            str(context.get_job_id()),
        )

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        subtask = self._subtask
        assert subtask is not None, "open() comes before run()"
        yield WriteResult(subtask.number, self._output.write(records, subtask))
