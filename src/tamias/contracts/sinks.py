"""What a sink is: a function called per record, or a writer with a committer behind it.

Exactly-once output needs two phases: everything written between two checkpoints is held back (prepared)
until the checkpoint that covers it exists, then committed. Both spellings of that are here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tamias.common.typeinfo import TypeInformation
from tamias.contracts.functions import Function

T = TypeVar("T")
TXN = TypeVar("TXN")
C = TypeVar("C")


class SinkContext(ABC):
    """Handed to a sink with each record."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """The record's event timestamp, or None."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The operator's current event-time watermark."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The wall clock, in milliseconds."""


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
    that began it. `commit` must be idempotent: after a failure it is called again for the same transaction.
    """

    @abstractmethod
    def begin_transaction(self) -> TXN:
        """Open a new transaction."""

    @abstractmethod
    def invoke_in(self, transaction: TXN, value: T, context: SinkContext) -> None:
        """Write one record into the transaction."""

    @abstractmethod
    def pre_commit(self, transaction: TXN) -> None:
        """Make the transaction durable, so that `commit` cannot fail for want of data."""

    @abstractmethod
    def commit(self, transaction: TXN) -> None:
        """Make the transaction visible; called again after a failure, so doing it twice must do no harm."""

    @abstractmethod
    def abort(self, transaction: TXN) -> None:
        """Drop the transaction."""

    def invoke(self, value: T, context: SinkContext) -> None:
        """Not called: the runtime calls `invoke_in` with the open transaction."""
        raise TypeError("a two-phase-commit sink is written through invoke_in")

    def recover_and_commit(self, transaction: TXN) -> None:
        """Commit a transaction found in a restored checkpoint; by default `commit`."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: TXN) -> None:
        """Abort a transaction found in a restored checkpoint; by default `abort`."""
        self.abort(transaction)


@dataclass(frozen=True, slots=True)
class WriterContext:
    """Where a writer runs."""

    subtask_index: int
    subtask_count: int
    attempt: int
    job_id: str
    operator_id: str


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
        """The input ended: everything still open goes into the `prepare_commit` that follows."""

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
        """The sink for records of a declared type; for sinks that write records as text."""
        return self

    def create_committer(self) -> Committer[Any] | None:
        """Make the committer of one subtask, or None for a sink that writes for good at once."""
        return None
