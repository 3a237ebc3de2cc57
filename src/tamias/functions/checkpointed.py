"""Functions that take part in checkpoints: what they implement beside their function class, and their contexts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from tamias.functions.state_stores import KeyedStateStore, OperatorStateStore

T = TypeVar("T")


class FunctionSnapshotContext(ABC):
    """Handed to `snapshot_state`."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Return the checkpoint being taken; ids only grow, also over restarts."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When it was triggered, in milliseconds."""


class FunctionInitializationContext(ABC):
    """Handed to `initialize_state`."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Return whether this operator starts from a checkpoint."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Return the checkpoint it starts from, or None."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Where state that belongs to the subtask is asked for."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Where keyed state is asked for; raises `StateNotKeyed` on a stream without keys when it is asked."""


class CheckpointedFunction(ABC):
    """A function that keeps state in the operator state store.

    What the store's lists hold when `snapshot_state` returns is what the checkpoint keeps.
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Put what is in memory into the state store. Never called while a record is processed."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Ask for state, and take over what was restored. Called before `open`, also on a fresh start."""


class ListCheckpointed(ABC, Generic[T]):
    """A function whose state is a list that is split over subtasks; the older, simpler form."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> Sequence[T] | None:
        """Return the state as a list of parts, each of which may go to another subtask; None or [] keeps nothing."""

    @abstractmethod
    def restore_state(self, state: list[T]) -> None:
        """Take over this subtask's parts. Called before `open`, and only when a checkpoint is restored."""


class CheckpointListener:
    """A function that wants to know how checkpoints ended."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Return the checkpoint is complete on all subtasks. May be skipped for one that a later one follows."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Return the checkpoint was given up after it had started."""
