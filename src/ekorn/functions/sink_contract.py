"""The kinds of sinks: `SinkFunction`, called per record, and `Sink`, a writer with a committer.

Exactly-once output needs two phases: output written between two checkpoints is prepared, and committed once the
checkpoint that covers it is complete. `TwoPhaseCommitSinkFunction` and `Sink` both offer this.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

from ekorn.functions.record_functions import Function
from ekorn.types.data_types import RowType
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
TXN = TypeVar("TXN")
C = TypeVar("C")


class SinkContext(ABC):
    """Passed to a sink with each record."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the record's event timestamp, or None."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's current event-time watermark."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the wall clock, in milliseconds."""


class SinkFunction(Function, ABC, Generic[T]):
    """A sink that is called once for each record."""

    @abstractmethod
    def invoke(self, value: T, context: SinkContext) -> None:
        """Write one record."""

    def with_columns(self, row_type: RowType) -> SinkFunction[T] | None:
        """Return this sink for batches of columns of a row type, or None if it takes rows.

        The returned sink gets batches by `invoke_batch`. Its state and its transactions are those of this sink.
        """
        return None

    def invoke_batch(self, batch: WrittenBatch, context: SinkContext) -> None:
        """Write rows as columns; called instead of `invoke` if `with_columns` returned the sink."""
        raise TypeError(f"{type(self).__name__} takes records, but its method with_columns said that it takes columns")

    def finish(self) -> None:
        """Flush. Called once, after the last record of a bounded input."""


class BufferingSinkFunction(SinkFunction[T], ABC, Generic[T]):
    """A sink that holds records back for a limited time."""

    @abstractmethod
    def next_flush_ms(self) -> int | None:
        """Return the processing time at which `flush_due` is to be called, or None if nothing waits."""

    @abstractmethod
    def flush_due(self, now_ms: int) -> None:
        """Write what has waited long enough. Called between epochs."""


class TwoPhaseCommitSinkFunction(SinkFunction[T], ABC, Generic[T, TXN]):
    """A sink whose output appears exactly once, through transactions that are tied to checkpoints.

    A transaction is plain picklable data that names what is being written (a file, a transactional id). It becomes part
    of the checkpoint, and another process than the one that began the transaction may call `commit` or `abort` for it.
    The methods are called in this order:

        begin_transaction   when the sink opens, and again at each checkpoint
        invoke              with every record
        pre_commit          when a checkpoint is taken; the transaction is then part of that checkpoint
        commit              when the checkpoint is complete

    After a failure, the transactions of the restored checkpoint are settled before anything else: prepared ones are
    committed (`recover_and_commit`), perhaps for the second time, and the open one is aborted (`recover_and_abort`). A
    transaction that was begun after the checkpoint is in no checkpoint; a sink that must find such transactions keeps
    their names in its user context. In the mode AT_LEAST_ONCE, a transaction is prepared and committed at the end of
    every epoch.
    """

    _transaction_timeout_ms: int | None = None
    _ignores_late_failures = False
    _warning_ratio: float | None = None
    _user_context: Any = None

    @abstractmethod
    def begin_transaction(self) -> TXN:
        """Open a new transaction."""

    @abstractmethod
    def invoke(self, transaction: TXN, value: T, context: SinkContext) -> None:  # type: ignore[override]
        """Write one record into the transaction. Flink: has this first argument too, unlike other sinks' `invoke`."""

    def invoke_batch(  # type: ignore[override]
        self, transaction: TXN, batch: WrittenBatch, context: SinkContext
    ) -> None:
        """Write rows as columns into the transaction; called if `with_columns` returned the sink."""
        super().invoke_batch(batch, context)

    @abstractmethod
    def pre_commit(self, transaction: TXN) -> None:
        """Make the transaction durable, so that `commit` finds all data."""

    @abstractmethod
    def commit(self, transaction: TXN) -> None:
        """Make the transaction visible. Called again after a failure, so it must be idempotent."""

    @abstractmethod
    def abort(self, transaction: TXN) -> None:
        """Discard the transaction."""

    def recover_and_commit(self, transaction: TXN) -> None:
        """Commit a transaction found in a restored checkpoint; by default `commit`."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: TXN) -> None:
        """Abort a transaction found in a restored checkpoint; by default `abort`."""
        self.abort(transaction)

    def finish_processing(self, transaction: TXN) -> None:
        """Write what is buffered into the transaction at the end of the input, before it is prepared and committed."""

    # ------------------------------------------------------------------------------------------ the user context

    def initialize_user_context(self) -> Any:
        """Return data that every checkpoint keeps beside the transactions, such as their ids; None for nothing.

        Called when the sink starts without a checkpoint. An earlier attempt that failed before its first checkpoint may
        have left transactions.
        """
        return None

    def get_user_context(self) -> Any:
        """Return the result of `initialize_user_context`, from this run or from the restored checkpoint."""
        return self._user_context

    def finish_recovering_context(self, handled_transactions: Collection[TXN]) -> None:
        """Abort transactions that a failed attempt began after the checkpoint.

        Called after a restore, when the user context is available and the transactions of the checkpoint
        (`handled_transactions`) are settled.
        """

    # ----------------------------------------------------------------------------------------------- timeouts

    def set_transaction_timeout(self, transaction_timeout_ms: int) -> Self:
        """Set the milliseconds after which the external system discards an uncommitted transaction."""
        if isinstance(transaction_timeout_ms, bool) or not isinstance(transaction_timeout_ms, int):
            raise TypeError(f"a transaction timeout is a whole number of milliseconds, got {transaction_timeout_ms!r}")
        if transaction_timeout_ms < 0:
            raise ValueError(f"a transaction timeout cannot be negative, got {transaction_timeout_ms}")
        self._transaction_timeout_ms = transaction_timeout_ms
        return self

    def ignore_failures_after_transaction_timeout(self) -> Self:
        """Log an error and continue if `recover_and_commit` fails for a transaction older than the timeout.

        The output of that transaction is lost. Without this setting the failure fails the job, on every restart.
        """
        self._ignores_late_failures = True
        return self

    def enable_transaction_timeout_warnings(self, warning_ratio: float) -> Self:
        """Log a warning if a transaction stays uncommitted for more than this share of the timeout."""
        if not 0 <= warning_ratio <= 1:
            raise ValueError(f"warning_ratio is a fraction of the timeout, from 0 to 1, got {warning_ratio!r}")
        self._warning_ratio = warning_ratio
        return self


@dataclass(frozen=True, slots=True)
class WriterContext:
    """The place and mode in which a writer runs."""

    subtask_index: int
    subtask_count: int
    attempt: int
    job_id: str
    operator_id: str
    exactly_once: bool = True  # False: output is committed when it is prepared, whether or not the checkpoint completes


class WrittenBatch(Protocol):
    """Rows as columns, as writers get them.

    Attributes:
        data: The columns.
        times: The timestamp of each row, a NumPy array of milliseconds since the epoch; None if the rows have none.
    """

    data: pa.RecordBatch
    times: Any

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def slice(self, start: int, length: int) -> Any:
        """Return a run of rows. The columns are shared."""
        ...

    def row(self, position: int) -> Row:
        """Return one row, as a stream of rows has it."""
        ...


class SinkWriter(ABC, Generic[T, C]):
    """Writes records, and returns what to commit at each checkpoint."""

    @abstractmethod
    def write(self, value: T, timestamp: int | None) -> None:
        """Write one record."""

    def write_batch(self, batch: WrittenBatch) -> None:
        """Write rows as columns; called instead of `write` if `Sink.with_columns` returned the sink.

        A row that cannot be written is a `RecordFormatError`, raised before any row of the batch is written. If
        `ekorn.on-record-error` skips records, the batch comes again in halves, down to the row at fault. Every other
        exception fails the job, because part of the batch may be written.
        """
        raise TypeError(f"{type(self).__name__} writes records, but its sink said that it takes columns")

    def end_epoch(self) -> None:
        """Take note of the end of an epoch, after which the source may be silent. All subtasks are open by then."""

    def prepare_commit(self) -> Sequence[C]:
        """Make the output since the last call durable, and return plain picklable data that names it."""
        return ()

    def snapshot_state(self) -> Sequence[Any]:
        """Return what a new writer needs to continue after a restore. Called after `prepare_commit`."""
        return ()

    def finish(self) -> None:
        """Complete open output at the end of the input; the `prepare_commit` that follows returns it."""

    def close(self) -> None:
        """Release files and connections, and discard output that was not prepared."""


class Committer(ABC, Generic[C]):
    """Makes committables visible, idempotently."""

    @abstractmethod
    def commit(self, committables: Sequence[C]) -> None:
        """Commit each committable, unless it is committed already."""

    def close(self) -> None:
        """Release connections. Called once, after the writer's `close`; the job has ended or restarts."""


class Sink(ABC, Generic[T]):
    """A sink for `stream.sink_to`."""

    @abstractmethod
    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> SinkWriter[T, Any]:
        """Create the writer of one subtask; `restored` is its share of the state of the earlier writers."""

    def with_input_type(self, type_info: TypeInformation | None) -> Sink[T]:
        """Return this sink for records of a declared type. Overridden by sinks that write records as text."""
        return self

    def with_columns(self, row_type: RowType) -> Sink[T] | None:
        """Return this sink for batches of columns of a row type, or None if it takes rows.

        The writers of the returned sink get batches by `write_batch`. Their state and their committables are those of
        this sink, so a savepoint moves between the forms. A `GloballyCommittedSink` returns one.
        """
        return None

    def create_committer(self) -> Committer[Any] | None:
        """Create the committer of one subtask; None for a sink whose writes are final."""
        return None


class CommitId(NamedTuple):
    """Names a commit. The numbers of a lineage grow, and are committed in their order, each perhaps several times."""

    lineage: str
    number: int


class GlobalCommitter(ABC, Generic[C]):
    """Makes the output of all subtasks visible in one step, idempotently."""

    @abstractmethod
    def commit(self, commit_id: CommitId, committables: Sequence[C]) -> None:
        """Commit what a checkpoint covers, unless a commit of this lineage with this or a higher number exists."""

    def new_lineage(self) -> str:
        """Return a name that no other committer has."""
        return uuid.uuid4().hex

    def close(self) -> None:
        """Release connections."""


class GloballyCommittedSink(Sink[T], ABC, Generic[T]):
    """A sink with one commit per checkpoint for all subtasks, as tables of a lake need it.

    Writers prepare their output at a checkpoint. One committer gets what all of them have prepared.
    """

    @abstractmethod
    def create_global_committer(self) -> GlobalCommitter[Any]:
        """Create the committer. Called in the one subtask that commits."""
