"""Spark's stages: chains of operators that run in one task, and the exchanges between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ekorn.batch.plan.operators import PlanOperator
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.planner.rdds import Rdds
from ekorn.batch.planner.run_watch import NoWatch, RunWatch, StageKey
from ekorn.batch.tasks.blobs import FIRST, REPORTS, SECOND, BlobReader, OperatorReport, OperatorSubtask, SharedRecords
from ekorn.batch.tasks.exits import ForwardExit, ShuffleExit, StageExit, StoringExit
from ekorn.batch.tasks.stage_task import StageTask
from ekorn.batch.tasks.task_context import TaskJobInfo
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.types.data_types import RowType

__all__ = ["Flow", "Stages"]

# The most operators in a chain; each is a generator that calls the previous one, and Python limits such calls.
_LONGEST_CHAIN = 100


@dataclass(frozen=True)
class Flow:
    """The records of an operator: an RDD, and the operators that run on it within one stage, not yet applied.

    Attributes:
        rdd: The RDD of what the stage reads.
        reads: The kind of input; see `StageTask`.
        partitions: The number of partitions.
        chain: The operators.
        partitioning: Which records are known to be together.
        shuffled: Whether the RDD comes from a shuffle, so that Spark can put it together with another one.
        side: The input of a two-input operator that the blobs are marked for.
        stored: Whether Spark has the RDD on disk or in memory once it is computed: it is a shuffle's result, or kept.
    """

    rdd: Any
    reads: str
    partitions: int
    chain: tuple[TaskOperator, ...] = ()
    partitioning: Partitioning | None = None
    shuffled: bool = False
    side: int = FIRST
    stored: bool = False

    def partitioned(self, partitioning: Partitioning | None) -> Flow:
        """Return the flow with another knowledge of its partitions."""
        return replace(self, partitioning=partitioning)


class Stages:
    """Builds the stages of one run.

    Args:
        rdds: Where the partitions are.
        facts: The job.
        first_number: The number of the first operator. Supersteps of an iteration give equal operators equal numbers.
        watch: Watches the run.

    Attributes:
        memory_mb: The memory that a Python worker may use.
        next_number: The number of the next operator.
        reports: The reports of all subtasks that have sent one.
    """

    def __init__(self, rdds: Rdds, facts: TaskJobInfo, first_number: int = 0, watch: RunWatch | None = None) -> None:
        self._rdds = rdds
        self._facts = facts
        self.watch: RunWatch = watch or NoWatch()
        self._current: int | None = None  # the number of the operator of the plan that is translated now
        self._iteration: StageKey | None = None  # the place of the iteration that runs now
        self._steps: Counter[int] = Counter()
        self._exits: Counter[int] = Counter()
        self.next_number = first_number
        self.memory_mb = rdds.memory_mb
        self.reports: dict[OperatorSubtask, OperatorReport] = {}
        self._variables: dict[str, Any] = {}
        self._sent: list[tuple[Flow, Any]] = []  # flows that were broadcast, and their broadcasts
        self._outside: Stages | None = None
        self._outside_flows: tuple[Flow, ...] = ()

    def inside(self, outside: Stages, flows: Iterable[Flow]) -> Stages:
        """Make these the stages of a superstep. The outer stages broadcast flows from outside of the iteration."""
        self._outside, self._outside_flows = outside, tuple(flows)
        self._iteration = outside._iteration
        return self

    def translate(self, operator: PlanOperator) -> None:
        """Note that an operator of the plan is translated from now on. One inside an iteration belongs to that."""
        if self._iteration is None:
            self._current = self.watch.number_of(operator)

    @contextmanager
    def iterating(self, operator: PlanOperator) -> Iterator[None]:
        """Let all stages that are made inside the block belong to an iteration."""
        number = self.watch.number_of(operator)
        self._iteration = None if number is None else StageKey(number, -1)
        try:
            yield
        finally:
            self._iteration = None

    @contextmanager
    def sharing(self, variables: dict[str, Any]) -> Iterator[None]:
        """Give broadcasts, by name, to the functions of all operators that are added inside the block."""
        self._variables = variables
        try:
            yield
        finally:
            self._variables = {}

    def source(self, splits: Sequence[Any], parallelism: int, reading: TaskOperator) -> Flow:
        """Return a flow of splits, shared out to the partitions in turn."""
        shares = [list(splits[number::parallelism]) for number in range(parallelism)]
        return self.then(Flow(self._rdds.of_elements(shares), "splits", parallelism), reading)

    def of_frame(self, frame: Any, row_type: RowType) -> Flow:
        """Return a flow of the rows of a DataFrame, in the partitions that Spark gives it."""
        rdd, partitions = self._rdds.of_frame(frame, row_type)
        return Flow(rdd, "blobs", partitions)

    def frame(self, flow: Flow, row_type: RowType, *, copies: int) -> Any:
        """Run a flow now, and return its records as a DataFrame, of which Spark keeps so many copies.

        It keeps two if a lost block that is computed again would not fit the others.
        """
        blobs = self.written(flow, ForwardExit())
        return self._rdds.frame(blobs, row_type, copies=2 if self._rdds.may_change(blobs) else copies)

    def then(self, flow: Flow, operator: TaskOperator) -> Flow:
        """Return a flow with one more operator in its stage. The knowledge of its partitions stays."""
        operator.number = self.next_number
        self.next_number += 1
        if self._current is not None and self._iteration is None:
            operator.step = (self._current, self._steps[self._current])
            self._steps[self._current] += 1
        if operator.functions:
            operator.shared |= self._variables
        if len(flow.chain) >= _LONGEST_CHAIN:
            flow = self._cut(flow)
        return replace(flow, chain=(*flow.chain, operator))

    def exchanged(self, flow: Flow, leaving: ShuffleExit, partitioning: Partitioning | None) -> Flow:
        """Return a flow whose records have passed a shuffle."""
        pairs = self._staged(flow, leaving, keeps_partitions=False)
        moved = self._rdds.shuffled(pairs, leaving.partitions)
        return Flow(
            moved,
            "blobs",
            leaving.partitions,
            partitioning=partitioning,
            shuffled=True,
            side=leaving.side,
            stored=True,
        )

    def fewer(self, flow: Flow, partitions: int) -> Flow:
        """Return a flow with fewer partitions, without a shuffle."""
        fewer = self._rdds.fewer(self.written(flow, ForwardExit()), partitions)
        return Flow(fewer, "blobs", partitions, stored=_is_stored(flow))

    def together(self, first: Flow, second: Flow, operator: TaskOperator) -> Flow:
        """Return a flow of an operator over two flows: partition i of both goes to one task, the first one first."""
        assert first.shuffled and second.shuffled and first.partitions == second.partitions
        blobs = [self.written(first, ForwardExit(side=FIRST)), self.written(second, ForwardExit(side=SECOND))]
        return self.then(Flow(self._rdds.union(blobs), "two", first.partitions, shuffled=True), operator)

    def union(self, flows: Iterable[Flow]) -> Flow:
        """Return the records of all flows. Partitions are put together if all flows come from equal shuffles."""
        given = list(flows)
        united = self._rdds.union([self.written(flow, ForwardExit()) for flow in given])
        aligned = all(flow.shuffled and flow.partitions == given[0].partitions for flow in given)
        partitions = given[0].partitions if aligned else sum(flow.partitions for flow in given)
        same = aligned and all(flow.partitioning == given[0].partitioning for flow in given)
        return Flow(
            united,
            "blobs",
            partitions,
            partitioning=given[0].partitioning if same else None,
            shuffled=aligned,
            stored=all(map(_is_stored, given)),
        )

    def kept(self, flow: Flow) -> Flow:
        """Return a flow that is computed once, however often it is read, until `release`."""
        if _is_stored(flow):
            return flow
        cut = self._cut(flow)
        if self._rdds.may_change(cut.rdd):
            # A lost block of Spark's cache would be computed again, and would not fit the other blocks.
            return self.exchanged(flow, StoringExit("keep", flow.partitions), flow.partitioning)
        return replace(cut, rdd=self._rdds.kept(cut.rdd), stored=True)

    def collected(self, flow: Flow, leaving: StageExit) -> list[Any]:
        """Run a flow now, and return what it sends to the driver."""
        reader = BlobReader(self._rdds.collected(self.written(flow, leaving)))
        records = list(reader.records(FIRST))
        self._keep(reader.reports)
        return records

    def broadcast(self, flow: Flow, name: str) -> Any:
        """Run a flow now, and return its records as a broadcast: `SharedRecords`, in the tasks.

        A flow from outside of an iteration is sent once for all supersteps.
        """
        if self._outside is not None and any(flow is each for each in self._outside_flows):
            return self._outside.broadcast(flow, name)
        for sent, shared in self._sent:
            if sent is flow:
                return shared
        blobs = self._rdds.collected(self.written(flow, ForwardExit(name)))
        reader = BlobReader([blob for blob in blobs if blob[0] == REPORTS])
        reader.pass_over()
        self._keep(reader.reports)
        shared = self._rdds.broadcast(SharedRecords([blob for blob in blobs if blob[0] != REPORTS]))
        self._sent.append((flow, shared))
        return shared

    def _keep(self, reports: list[OperatorReport]) -> None:
        self.reports |= {report.source: report for report in reports}

    def release(self) -> None:
        """Drop what `kept` and `broadcast` keep."""
        self._sent.clear()
        self._rdds.release()

    def drop_shuffles(self) -> None:
        """Remove the files of all shuffles, which nothing reads any more."""
        self._rdds.drop_shuffles()

    def written(self, flow: Flow, leaving: StageExit) -> Any:
        """Return the RDD of the blobs that a stage writes."""
        if not flow.chain and flow.reads == "blobs" and type(leaving) is ForwardExit and leaving.side == flow.side:
            return flow.rdd
        return self._staged(flow, leaving, keeps_partitions=True)

    def _cut(self, flow: Flow) -> Flow:
        """Return the same records as blobs of a stage of their own."""
        return replace(flow, rdd=self.written(flow, ForwardExit()), reads="blobs", chain=(), side=FIRST, stored=False)

    def _staged(self, flow: Flow, leaving: StageExit, *, keeps_partitions: bool) -> Any:
        self.watch.check()
        key = self._key(flow, leaving)
        told = None if key is None else self.watch.reports_of(key)
        task = StageTask(self._facts, flow.reads, flow.chain, leaving, flow.partitions, flow.side, told)
        rdd = flow.rdd
        by_order = leaving.goes_by_order or any(each.goes_by_order for each in flow.chain)
        if by_order and flow.reads != "splits":
            rdd = self._rdds.in_order(rdd)
        staged = self._rdds.staged(rdd, task, keeps_partitions=keeps_partitions)
        if key is not None:
            self.watch.staged(self._rdds.number_of(staged), key)
        return staged

    def _key(self, flow: Flow, leaving: StageExit) -> StageKey | None:
        """Return the place of a stage in the plan; None if it has none."""
        if self._iteration is not None:
            return self._iteration
        if flow.chain:
            step = flow.chain[-1].step
            return None if step is None else StageKey(*step)
        if self._current is None or isinstance(leaving, StoringExit):  # only a cluster stores
            return None
        self._exits[self._current] += 1
        return StageKey(self._current, self._exits[self._current], is_exit=True)


def _is_stored(flow: Flow) -> bool:
    """Return whether reading a flow again computes nothing again."""
    return flow.stored and not flow.chain
