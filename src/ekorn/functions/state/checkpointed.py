"""Interfaces of functions that take part in checkpoints, and the contexts passed to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from ekorn.functions.state.raw_streams import (
    KeyedStateCheckpointOutputStream,
    KeyGroupStatePartitionStreamProvider,
    OperatorStateCheckpointOutputStream,
    StatePartitionStreamProvider,
)
from ekorn.functions.state.state_stores import KeyedStateStore, OperatorStateStore

T = TypeVar("T")


class FunctionSnapshotContext(ABC):
    """Passed to `snapshot_state`."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Return the id of the checkpoint in progress. Ids grow, also across restarts."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """Return the time at which the checkpoint was triggered, in milliseconds."""

    # Flink: raw state is for operators, whose contexts are a StateSnapshotContext and a StateInitializationContext.
    # Here programs have no operators of their own, so the contexts of functions offer it.

    @abstractmethod
    def get_raw_operator_state_output(self) -> OperatorStateCheckpointOutputStream:
        """Return the stream for bytes that belong to this subtask and not to a key."""

    @abstractmethod
    def get_raw_keyed_operator_state_output(self) -> KeyedStateCheckpointOutputStream:
        """Return the stream for bytes that belong to the key groups of this subtask.

        Raises:
            StateError: The stream has no keys.
        """


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

    @abstractmethod
    def get_raw_operator_state_inputs(self) -> list[StatePartitionStreamProvider]:
        """Return the partitions of raw operator state that this subtask restores.

        If the parallelism has not changed, these are the partitions that it wrote. Else the partitions of all subtasks
        are distributed evenly, in their order.
        """

    @abstractmethod
    def get_raw_keyed_state_inputs(self) -> list[KeyGroupStatePartitionStreamProvider]:
        """Return the raw keyed state that this subtask restores, one piece for each key group that has one."""


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
