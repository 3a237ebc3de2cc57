"""Interfaces of functions that take part in checkpoints, and the contexts passed to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from tamias.functions.state_stores import KeyedStateStore, OperatorStateStore

T = TypeVar("T")


class FunctionSnapshotContext(ABC):
    """Passed to `snapshot_state`."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Return the id of the checkpoint in progress. Ids grow, also across restarts."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """Return the time at which the checkpoint was triggered, in milliseconds."""


class FunctionInitializationContext(ABC):
    """Passed to `initialize_state`."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Return whether this operator starts from a checkpoint."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Return the id of the checkpoint that this operator starts from, or None."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of state that belongs to the subtask."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of keyed state. On a stream without keys, the methods of the store raise `StateNotKeyed`."""


class CheckpointedFunction(ABC):
    """A function that keeps state in the operator state store.

    A checkpoint keeps the content of the store's lists as of the return of `snapshot_state`.
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Copy the function's state from memory to the state store. Never called while a record is processed."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Get states from the store and read restored values. Called before `open`, also on a fresh start."""


class ListCheckpointed(ABC, Generic[T]):
    """A function whose state is a list that is distributed over subtasks; the older, simpler interface."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> Sequence[T] | None:
        """Return the state as a list whose elements may be restored on different subtasks; None or [] keeps nothing."""

    @abstractmethod
    def restore_state(self, state: list[T]) -> None:
        """Restore the elements of this subtask. Called before `open`, and only if a checkpoint is restored."""


class CheckpointListener:
    """A function that is notified of the outcome of checkpoints."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """React to a checkpoint that completed on all subtasks. A later completed checkpoint may stand for this one."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """React to a checkpoint that was aborted after it had started."""
