"""What a sink is: a function called per record, or a writer with a committer behind it.

Exactly-once output needs two phases: everything written between two checkpoints is held back (prepared)
until the checkpoint that covers it exists, then committed. Both spellings of that are here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from tamias.functions.record_functions import Function
from tamias.types.type_information import TypeInformation

T = TypeVar("T")
TXN = TypeVar("TXN")
C = TypeVar("C")


class SinkContext(ABC):
    """Handed to a sink with each record."""

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
    """A sink that is called once per record."""

    @abstractmethod
    def invoke(self, value: T, context: SinkContext) -> None:
        """Take one record."""

    def finish(self) -> None:
        """Called once at the successful end of a bounded input: the last chance to flush."""


class TwoPhaseCommitSinkFunction(SinkFunction[T], ABC, Generic[T, TXN]):
    """A sink whose output appears exactly once, through transactions tied to checkpoints.

    A transaction is plain picklable data that names what is being written (a file, a transactional id): it
    is part of the checkpoint, and `commit` and `abort` may be called for it by another process than the one
    that began it. Its life:

        begin_transaction   when the sink opens, and again at each checkpoint
        invoke              with every record
        pre_commit          when a checkpoint is taken; the transaction is part of that checkpoint from then on
        commit              when the checkpoint is complete

    After a failure the transactions that the restored checkpoint holds are settled before anything else: those that
    were prepared for it are committed (`recover_and_commit`), perhaps for the second time, and the one that was open is
    aborted (`recover_and_abort`). A transaction that was begun later is in no checkpoint; a sink that has to
    find such ones keeps their names in its user context. In the mode AT_LEAST_ONCE a transaction is prepared and
    committed at once, at the end of every epoch.
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
        """Write one record into the transaction. Flink: as here, it has one argument more than of other sinks."""

    @abstractmethod
    def pre_commit(self, transaction: TXN) -> None:
        """Make the transaction durable, so that `commit` cannot fail for want of data."""

    @abstractmethod
    def commit(self, transaction: TXN) -> None:
        """Make the transaction visible; called again after a failure, so doing it twice must do no harm."""

    @abstractmethod
    def abort(self, transaction: TXN) -> None:
        """Drop the transaction."""

    def recover_and_commit(self, transaction: TXN) -> None:
        """Commit a transaction found in a restored checkpoint; by default `commit`."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: TXN) -> None:
        """Abort a transaction found in a restored checkpoint; by default `abort`."""
        self.abort(transaction)

    def finish_processing(self, transaction: TXN) -> None:
        """Return the input has ended: write what is left into the transaction, which is then prepared and committed."""

    # ------------------------------------------------------------------------------------------ the user context

    def initialize_user_context(self) -> Any:
        """What every checkpoint keeps beside the transactions, such as the ids used for them; None for nothing.

        Called when the sink starts without a checkpoint: there may be transactions of an attempt that failed before
        its first one.
        """
        return None

    def get_user_context(self) -> Any:
        """What `initialize_user_context` gave, in this run or in the one that was restored."""
        return self._user_context

    def finish_recovering_context(self, handled_transactions: Collection[TXN]) -> None:
        """Return a restored user context is in force, and the transactions beside it are settled: these ones.

        The place to abort what a failed attempt began after the checkpoint.
        """

    # ----------------------------------------------------------------------------------------------- timeouts

    def set_transaction_timeout(self, transaction_timeout_ms: int) -> Self:
        """Say after how many milliseconds the system behind the sink drops a transaction that was not committed."""
        if isinstance(transaction_timeout_ms, bool) or not isinstance(transaction_timeout_ms, int):
            raise TypeError(f"a transaction timeout is in whole milliseconds, got {transaction_timeout_ms!r}")
        if transaction_timeout_ms < 0:
            raise ValueError(f"a transaction timeout cannot be negative, got {transaction_timeout_ms}")
        self._transaction_timeout_ms = transaction_timeout_ms
        return self

    def ignore_failures_after_transaction_timeout(self) -> Self:
        """Go on, with an error in the log, when `recover_and_commit` fails for a transaction older than the timeout.

        What was written in it is lost then. Otherwise such a failure fails the job, again and again.
        """
        self._ignores_late_failures = True
        return self

    def enable_transaction_timeout_warnings(self, warning_ratio: float) -> Self:
        """Write a warning to the log when a transaction takes more than this share of the timeout to be committed."""
        if not 0 <= warning_ratio <= 1:
            raise ValueError(f"warning_ratio is a share of the timeout, from 0 to 1, got {warning_ratio!r}")
        self._warning_ratio = warning_ratio
        return self


@dataclass(frozen=True, slots=True)
class WriterContext:
    """Where a writer runs."""

    subtask_index: int
    subtask_count: int
    attempt: int
    job_id: str
    operator_id: str
    exactly_once: bool = True  # else what is prepared is committed at once, whether or not its checkpoint completes


class SinkWriter(ABC, Generic[T, C]):
    """Writes records; hands over what is to be committed at each checkpoint."""

    @abstractmethod
    def write(self, value: T, timestamp: int | None) -> None:
        """Take one record."""

    def prepare_commit(self) -> Sequence[C]:
        """Make what was written since the last call durable and name it. Plain picklable data."""
        return ()

    def snapshot_state(self) -> Sequence[Any]:
        """What a new writer needs to go on after a restore. Called after `prepare_commit`."""
        return ()

    def finish(self) -> None:
        """Return the input ended: everything still open goes into the `prepare_commit` that follows."""

    def close(self) -> None:
        """Release files and connections; drop what was not prepared."""


class Committer(ABC, Generic[C]):
    """Makes committables visible, idempotently."""

    @abstractmethod
    def commit(self, committables: Sequence[C]) -> None:
        """Commit each; one that is committed already is left alone."""


class Sink(ABC, Generic[T]):
    """A sink for `stream.sink_to`."""

    @abstractmethod
    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> SinkWriter[T, Any]:
        """Make the writer of one subtask; `restored` is its share of the writers' saved state."""

    def with_input_type(self, type_info: TypeInformation | None) -> Sink[T]:
        """Return the sink for records of a declared type; for sinks that write records as text."""
        return self

    def create_committer(self) -> Committer[Any] | None:
        """Make the committer of one subtask, or None for a sink that writes for good at once."""
        return None
