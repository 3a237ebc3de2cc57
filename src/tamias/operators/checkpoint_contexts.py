"""The contexts that `CheckpointedFunction`s are given."""

from __future__ import annotations

from tamias.functions.checkpointed import FunctionInitializationContext, FunctionSnapshotContext
from tamias.functions.state_stores import KeyedStateStore, OperatorStateStore


class SnapshotContext(FunctionSnapshotContext):
    """The argument of `snapshot_state`."""

    def __init__(self, checkpoint_id: int, timestamp_ms: int) -> None:
        self._id = checkpoint_id
        self._timestamp_ms = timestamp_ms

    def get_checkpoint_id(self) -> int:
        return self._id

    def get_checkpoint_timestamp(self) -> int:
        return self._timestamp_ms


class InitializationContext(FunctionInitializationContext):
    """The argument of `initialize_state`."""

    def __init__(
        self,
        checkpoint_id: int | None,
        *,
        restored: bool,
        operator_store: OperatorStateStore,
        keyed_store: KeyedStateStore,
    ) -> None:
        self._checkpoint_id = checkpoint_id
        self._restored = restored
        self._operator_store = operator_store
        self._keyed_store = keyed_store

    def is_restored(self) -> bool:
        return self._restored

    def get_restored_checkpoint_id(self) -> int | None:
        return self._checkpoint_id

    def get_operator_state_store(self) -> OperatorStateStore:
        return self._operator_store

    def get_keyed_state_store(self) -> KeyedStateStore:
        return self._keyed_store
