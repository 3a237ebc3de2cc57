"""The last operator of a sink: writes the records of a subtask, and yields what the driver needs to commit them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ekorn.batch.outputs.output import Output, SinkSubtask, WriteResult
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.functions.runtime_context import RuntimeContext

__all__ = ["WriteRecords"]


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
