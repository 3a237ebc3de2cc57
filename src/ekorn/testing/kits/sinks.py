"""The promises of an exactly-once `Sink`: what kills at every step, restores and rescaling must not change.

A kit drives the sink in the runtime's order of calls, in this process. A test of a sink defines a `SinkCase` and a
subclass of a kit with a fixture `make_case`, which returns a new case with a destination of its own at every call:

    class TestFiles(SinkKit):
        @pytest.fixture
        def make_case(self, tmp_path):
            return lambda: FilesCase(tmp_path / uuid.uuid4().hex)
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ekorn.functions.sink_contract import Sink, WriterContext
from ekorn.testing.kits.kit import Kit, for_each, promise, raised, same_records
from ekorn.types.data_types import RowType

__all__ = ["STORY", "ColumnSinkKit", "RefusesBadRecords", "SinkCase", "SinkJob", "SinkKit"]

# Two checkpoints, one of them completed only after more records were written, and one that is aborted.
STORY = ("write", "write", "begin", "write", "complete", "write", "begin", "abort", "write", "begin", "complete")


class SinkCase(ABC):
    """One sink with a destination of its own."""

    row_type: RowType | None = None
    """The columns of the records, which are rows, for `ColumnSinkKit`."""

    @abstractmethod
    def sink(self) -> Sink[Any]:
        """Return the sink."""

    @abstractmethod
    def record(self, number: int) -> Any:
        """Return a record; records of different numbers differ."""

    @abstractmethod
    def visible(self) -> list[Any]:
        """Return the records that a reader of the destination sees, in any order."""

    def settle(self) -> None:  # noqa: B027 -- most destinations have nothing to wait for
        """Wait until all that was committed is visible, where a commit returns before readers see its records."""

    def spoil(self) -> tuple[Any, type[Exception], str]:
        """Return a record that the sink refuses, the error, and a pattern of its message."""
        raise AssertionError("a case of `RefusesBadRecords` has a record that its sink refuses")


class SinkKit(Kit):
    """The promises of every exactly-once sink."""

    comparable: ClassVar[Callable[[Any], Any]] = staticmethod(repr)
    """Returns a hashable form of a record, by which records are compared."""
    parallelisms: ClassVar[tuple[int, ...]] = (1, 3)
    """The parallelisms at which jobs of 2 subtasks are restored."""
    records_per_write: ClassVar[int] = 1
    """How many records are written at a time."""

    def test_all_records_are_visible_at_the_end(self, make_case: Callable[[], SinkCase]) -> None:
        """Write through completed and aborted checkpoints, and finish."""
        case = make_case()
        job = self.job(case)
        self.play(job, case, STORY)
        job.finish()
        count = 5 * type(self).records_per_write
        promise(len(job.written) == count, f"{len(job.written)} records were written, not {count}")
        self.compare(case, job, "at the end")

    def test_nothing_is_visible_before_its_checkpoint_is_complete(self, make_case: Callable[[], SinkCase]) -> None:
        """Look at the destination while a checkpoint is in progress."""
        case = make_case()
        job = self.job(case)
        self.play(job, case, ("write", "write", "begin"))
        early = case.visible()
        promise(early == [], f"{early!r} is visible, although no checkpoint is complete")

    @for_each(killed_after=range(len(STORY) + 1))
    def test_a_kill_after_every_step_loses_and_repeats_nothing(
        self, make_case: Callable[[], SinkCase], killed_after: int
    ) -> None:
        """Lose the process after a step, restore at another parallelism, and go on."""
        for parallelism in type(self).parallelisms:
            case = make_case()
            job = self.job(case)
            self.play(job, case, STORY[:killed_after])
            job.crash(parallelism)
            self.play(job, case, STORY)
            job.finish()
            self.compare(case, job, f"restored at parallelism {parallelism}")

    @for_each(notified=(0, 1))
    def test_a_kill_between_the_commits_of_subtasks_loses_and_repeats_nothing(
        self, make_case: Callable[[], SinkCase], notified: int
    ) -> None:
        """Lose the process when some subtasks have committed a checkpoint, and again during the restore."""
        case = make_case()
        job = self.job(case)
        self.play(job, case, ("write", "write", "write", "begin"))
        job.complete_checkpoint(notified=notified)
        job.crash(3, dies_after=1)
        self.play(job, case, ("write",))
        job.finish()
        self.compare(case, job, "after two kills")

    def test_an_orderly_end_discards_what_no_checkpoint_covers(self, make_case: Callable[[], SinkCase]) -> None:
        """Close the writers with records that no checkpoint covers, and restore."""
        case = make_case()
        job = self.job(case)
        self.play(job, case, ("write", "begin", "complete", "write", "write"))
        job.crash(2, orderly=True)
        job.finish()
        count = type(self).records_per_write
        promise(len(job.written) == count, f"{len(job.written)} records were written, not {count}")
        self.compare(case, job, "after the restore")

    def test_a_checkpoint_is_restored_again_and_again(self, make_case: Callable[[], SinkCase]) -> None:
        """Restore one checkpoint three times: a commit that is repeated has no effect."""
        case = make_case()
        job = self.job(case)
        self.play(job, case, ("write", "write", "begin", "complete"))
        for parallelism in (3, 1, 2):
            job.crash(parallelism)
        job.finish()
        self.compare(case, job, "after three restores")

    def job(self, case: SinkCase) -> SinkJob:
        """Start a job of two subtasks."""
        return SinkJob(case.sink(), 2)

    def play(self, job: SinkJob, case: SinkCase, steps: tuple[str, ...]) -> None:
        """Take steps: write a record; begin, complete or abort a checkpoint."""
        for step in steps:
            match step:
                case "write":
                    first, count = len(job.written), type(self).records_per_write
                    job.write(first // count, *(case.record(job.last_id * 100 + first + n) for n in range(count)))
                case "begin":
                    job.begin_checkpoint()
                case "complete":
                    job.complete_checkpoint()
                case "abort":
                    job.abort_checkpoint()

    def compare(self, case: SinkCase, job: SinkJob, where: str) -> None:
        """Compare what is visible with what was written, in any order."""
        case.settle()
        form = type(self).comparable
        same_records(Counter(map(form, case.visible())), Counter(map(form, job.written)), where)


class ColumnSinkKit(SinkKit):
    """The promises of an exactly-once sink that takes batches of columns. Its case has a `row_type`."""

    records_per_write = 3

    def job(self, case: SinkCase) -> SinkJob:
        """Start a job of two subtasks that write batches."""
        return SinkJob(self.by_columns(case), 2, columns=case.row_type)

    def by_columns(self, case: SinkCase) -> Sink[Any]:
        """Return the sink for batches."""
        if case.row_type is None:
            raise AssertionError("the case has no row_type")
        sink = case.sink().with_columns(case.row_type)
        if sink is None:
            raise AssertionError("with_columns() returned None, so the sink takes rows")
        return sink

    @for_each(to_columns=(False, True))
    def test_a_savepoint_moves_between_rows_and_columns(
        self, make_case: Callable[[], SinkCase], to_columns: bool
    ) -> None:
        """Take a checkpoint in one form, lose the process with records in flight, and restore in the other form."""
        case = make_case()
        rows, columns = (case.sink(), None), (self.by_columns(case), case.row_type)
        before, after = (rows, columns) if to_columns else (columns, rows)
        job = SinkJob(before[0], 2, columns=before[1])
        self.play(job, case, STORY[:5])
        job.sink, job.columns = after
        job.crash(3)
        self.play(job, case, STORY)
        job.finish()
        self.compare(case, job, "restored in the other form")


class RefusesBadRecords(Kit):
    """The promise of a sink that does not take every record."""

    def test_a_record_that_cannot_be_written_is_an_error_that_says_why(self, make_case: Callable[[], SinkCase]) -> None:
        """Write the record, and take a checkpoint."""
        case = make_case()
        record, error, says = case.spoil()
        job = SinkJob(case.sink(), 1)

        def write() -> None:
            job.write(0, record)
            job.checkpoint()

        raised(error, says, write)


@dataclass
class _Checkpoint:
    """One checkpoint: (committables, writer states) of each subtask, and the records that it covers."""

    id: int
    subtasks: list[bytes]
    covered: list[Any]


class _Subtask:
    """One subtask of a sink: commits the restored committables, then writes."""

    def __init__(self, sink: Sink[Any], index: int, count: int, restored: tuple[list[Any], list[Any]]) -> None:
        committables, states = restored
        self.committer = sink.create_committer()
        self._commit([committable for _, committable in committables])
        context = WriterContext(subtask_index=index, subtask_count=count, attempt=0, job_id="j", operator_id="o")
        self.writer: Any = sink.create_writer(context, states)
        self.waiting: list[tuple[int, Any]] = []
        self._finished = False

    def finish(self) -> None:
        self.writer.finish()
        self._finished = True

    def close(self) -> None:
        self.writer.close()
        if self.committer is not None:
            self.committer.close()

    def snapshot(self, checkpoint_id: int) -> bytes:
        if not self._finished:  # the epoch in which a subtask finishes has no other end
            self.writer.end_epoch()
        self.waiting += [(checkpoint_id, c) for c in self.writer.prepare_commit()]
        return pickle.dumps((list(self.waiting), list(self.writer.snapshot_state())))

    def completed(self, checkpoint_id: int) -> None:
        self._commit([c for i, c in self.waiting if i <= checkpoint_id])
        self.waiting = [(i, c) for i, c in self.waiting if i > checkpoint_id]

    def _commit(self, committables: list[Any]) -> None:
        if committables:
            if self.committer is None:
                raise AssertionError("prepare_commit() returned committables, but create_committer() no committer")
            self.committer.commit(committables)


@dataclass
class SinkJob:
    """The subtasks of a sink, its checkpoints, and a model of the expected output.

    Attributes:
        sink: The sink.
        parallelism: How many subtasks write.
        written: The records that a reader must see at the end: those of the checkpoint restored last, and later ones.
        latest: The checkpoint that was completed last.
        begun: The checkpoints in progress, the oldest first.
        last_id: The id of the newest checkpoint.
        columns: The columns of the batches in which records are written; None to write record by record.
    """

    sink: Sink[Any]
    parallelism: int
    written: list[Any] = field(default_factory=list)
    latest: _Checkpoint | None = None
    begun: list[_Checkpoint] = field(default_factory=list)
    last_id: int = 0
    columns: RowType | None = None

    def __post_init__(self) -> None:
        self.start()

    def start(self, *, dies_after: int | None = None) -> None:
        """Start the subtasks from the latest checkpoint; only some of them if the attempt fails at once."""
        saved = [pickle.loads(part) for part in self.latest.subtasks] if self.latest else []
        shares: list[tuple[list[Any], list[Any]]] = [([], []) for _ in range(self.parallelism)]
        for kind in (0, 1):
            elements = [(n, e) for n, part in enumerate(saved) for e in part[kind]]
            same = len(saved) == self.parallelism
            for number, (owner, element) in enumerate(elements):
                shares[owner if same else number % self.parallelism][kind].append(element)
        starting = list(enumerate(shares))[:dies_after]
        self.subtasks = [_Subtask(self.sink, i, self.parallelism, share) for i, share in starting]

    def write(self, subtask: int, *values: Any) -> None:
        """Write records, as one batch if the sink takes columns."""
        writer = self.subtasks[subtask % self.parallelism].writer
        if self.columns is not None:
            writer.write_batch(_batch_of(values, self.columns))
        else:
            for value in values:
                writer.write(value, None)
        self.written += values

    def begin_checkpoint(self) -> None:
        """Snapshot every subtask."""
        self.last_id += 1
        parts = [subtask.snapshot(self.last_id) for subtask in self.subtasks]
        self.begun.append(_Checkpoint(self.last_id, parts, list(self.written)))

    def complete_checkpoint(self, *, notified: int | None = None) -> None:
        """Complete the oldest checkpoint in progress, and notify the first `notified` subtasks, or all."""
        if self.begun:
            self.latest = self.begun.pop(0)
            for subtask in self.subtasks[:notified]:
                subtask.completed(self.latest.id)

    def abort_checkpoint(self) -> None:
        """Abort the oldest checkpoint in progress."""
        if self.begun:
            self.begun.pop(0)

    def checkpoint(self) -> None:
        """Begin a checkpoint, and complete all that are in progress."""
        self.begin_checkpoint()
        while self.begun:
            self.complete_checkpoint()

    def crash(self, parallelism: int, *, orderly: bool = False, dies_after: int | None = None) -> None:
        """Lose the subtasks and start from the latest checkpoint, perhaps at the second attempt."""
        if orderly:
            for subtask in self.subtasks:
                subtask.close()
        self.parallelism = parallelism
        self.begun = []
        self.written = list(self.latest.covered) if self.latest else []
        if dies_after is not None:
            self.start(dies_after=dies_after)
        self.start()

    def finish(self) -> None:
        """End the input: finish every subtask, complete a last checkpoint, and close."""
        for subtask in self.subtasks:
            subtask.finish()
        self.checkpoint()
        for subtask in self.subtasks:
            subtask.close()


def _batch_of(records: Sequence[Any], row_type: RowType) -> Any:
    from ekorn.columns.column_batch import ColumnBatch  # which loads PyArrow
    from ekorn.columns.row_columns import RowColumns

    return ColumnBatch(RowColumns(row_type).batch(records))
