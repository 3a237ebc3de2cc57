"""A stage in one task: reads blobs, runs a chain of operators over their records, and writes blobs."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import cloudpickle

from ekorn.batch.tasks.blobs import FIRST, SECOND, BlobReader, OperatorReport, OperatorSubtask
from ekorn.batch.tasks.exits import DealingExit, ShuffleExit, StoringExit
from ekorn.batch.tasks.fused_loop import fused
from ekorn.batch.tasks.record_operators import ReadSplits
from ekorn.batch.tasks.superstep import FunctionFields, task_context
from ekorn.batch.tasks.task_context import TaskJobInfo
from ekorn.batch.tasks.task_errors import TaskFailed, user_error
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.batch.tasks.task_reports import Records, TaskReport, TaskReports, packed_accumulators
from ekorn.functions.results.accumulators import merge_accumulators
from ekorn.garbage import collecting_by_growth

__all__ = ["StageReports", "StageTask"]

_COLLECT_GARBAGE = (100_000, 20, 20)  # tables of records hold no cycles, so Python need not walk them often


@dataclass(frozen=True)
class StageReports:
    """How the tasks of a stage report: its number in the job, its vertex, and what takes the reports."""

    stage: int
    vertex: int
    reports: TaskReports


class StageTask:
    """The callable that Spark calls with each partition of a stage.

    Args:
        facts: The job.
        reads: How the stage reads: ``"splits"`` of a source, ``"blobs"`` of one input, or of ``"two"`` inputs.
        chain: The operators, in the order in which records pass them.
        leaving: The exit, a `TaskOperator` too.
        parallelism: The number of partitions.
        side: The input for which the blobs of one input are marked.
        told: Where the tasks report what they have done; None if nobody watches the job.
    """

    def __init__(  # noqa: PLR0917 - built in one place
        self,
        facts: TaskJobInfo,
        reads: str,
        chain: tuple[TaskOperator, ...],
        leaving: Any,
        parallelism: int,
        side: int = FIRST,
        told: StageReports | None = None,
    ) -> None:
        self._facts = facts
        self._reads = reads
        self._parallelism = parallelism
        self._side = side
        self._told = told
        operators = [*chain, leaving]
        self._shared = [each.shared for each in operators]
        # Each operator is pickled by itself: a function that the program passes twice is two objects in a task. Spark
        # must see broadcasts when it pickles this object, so they stay outside.
        self._operators = [cloudpickle.dumps(_without_shared(each)) for each in operators]

    def __call__(self, index: int, elements: Iterable[Any]) -> Iterator[bytes]:
        """Yield what the stage writes for one partition."""
        chain: list[TaskOperator] = [cloudpickle.loads(each) for each in self._operators]
        for operator, shared in zip(chain, self._shared, strict=True):
            operator.shared = {name: broadcast.value.records() for name, broadcast in shared.items()}
        thresholds = gc.get_threshold()
        gc.set_threshold(*_COLLECT_GARBAGE)
        try:
            with collecting_by_growth():  # the thresholds count objects, whatever garbage refers to
                yield from self._run(index, elements, chain)
        except Exception as error:
            raise TaskFailed(user_error(error, chain[0], index, all_frames=self._facts.all_frames)) from error
        finally:
            gc.set_threshold(*thresholds)

    def _run(self, index: int, elements: Iterable[Any], chain: list[TaskOperator]) -> Iterator[bytes]:
        from pyspark import TaskContext

        leaving: Any
        *operators, leaving = chain
        if isinstance(leaving, DealingExit | StoringExit):
            leaving.index = index
        spark = TaskContext.get()
        attempt = 0 if spark is None else spark.attemptNumber()  # a test runs tasks without Spark
        contexts = [task_context(self._facts, each, index, self._parallelism, attempt) for each in operators]
        fields = [FunctionFields(self._facts.superstep, each, index) for each in operators]
        reader = BlobReader(elements if self._reads != "splits" else ())
        written, pieces, began_s = Records(), [0, 0], time.perf_counter()
        place = 0
        try:
            for operator, context in zip(operators, contexts, strict=True):
                operator.open(context)
            for piece in leaving.write(written.counted(self._through(operators, reader, elements))):
                pieces[place] += len(piece)
                place = 1 - place
                yield piece
        except BaseException:
            _close(operators, after_failure=True)
            raise
        _close(operators)
        reader.pass_over()
        reports = list(reader.reports)
        for operator, context, of_functions in zip(operators, contexts, fields, strict=True):
            source = OperatorSubtask(operator.number, index)
            report = OperatorReport(source, context.accumulators, context.aggregates, of_functions.changed())
            if any(report[1:]):
                reports.append(report)
        if reports:
            yield from leaving.write_reports(reports)
        if self._told is not None:
            took_ms = (time.perf_counter() - began_s) * 1000
            head = operators[0] if operators else None
            records_in = head.read.number if isinstance(head, ReadSplits) else reader.records_read
            accumulators = merge_accumulators([each.accumulators for each in contexts])
            told = TaskReport(
                self._told.stage,
                self._told.vertex,
                index,
                records_in=records_in,
                records_out=written.number,
                bytes_in=reader.bytes_read,
                # A shuffle gets the number of a partition before each blob, which is no output.
                bytes_out=pieces[1] if isinstance(leaving, ShuffleExit) else sum(pieces),
                ended_ms=int(time.time() * 1000),
                busy_ms=took_ms,
                accumulators=packed_accumulators(accumulators),
            )
            self._told.reports.add([told])

    def _through(self, operators: list[TaskOperator], reader: BlobReader, elements: Iterable[Any]) -> Iterator[Any]:
        rest = list(operators)
        if self._reads == "two":
            records = rest.pop(0).run_two(reader.records(FIRST), reader.records(SECOND))
        elif self._reads == "blobs":
            records = reader.records(self._side)
        else:
            records = iter(elements)
        for each in fused(rest):
            records = each.run(records)
        return records


def _without_shared(operator: TaskOperator) -> TaskOperator:
    copied = copy(operator)
    copied.shared = {}
    return copied


def _close(operators: list[TaskOperator], *, after_failure: bool = False) -> None:
    for operator in reversed(operators):
        try:
            operator.close()
        except Exception:
            if not after_failure:  # the failure itself says more than an error raised by closing
                raise
