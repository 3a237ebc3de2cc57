"""The contexts that `CheckpointedFunction`s are given."""

from __future__ import annotations

from ekorn.functions.state.checkpointed import FunctionInitializationContext, FunctionSnapshotContext
from ekorn.functions.state.raw_streams import (
    KeyedStateCheckpointOutputStream,
    KeyGroupStatePartitionStreamProvider,
    OperatorStateCheckpointOutputStream,
    StatePartitionStreamProvider,
)
from ekorn.functions.state.state_stores import KeyedStateStore, OperatorStateStore
from ekorn.state.raw_state import RawOutputs, RestoredRawState


class SnapshotContext(FunctionSnapshotContext):
    """The argument of `snapshot_state`."""

    def __init__(self, checkpoint_id: int, timestamp_ms: int, raw: RawOutputs) -> None:
        self._id = checkpoint_id
        self._timestamp_ms = timestamp_ms
        self._raw = raw

    def get_checkpoint_id(self) -> int:
        return self._id

    def get_checkpoint_timestamp(self) -> int:
        return self._timestamp_ms

    def get_raw_operator_state_output(self) -> OperatorStateCheckpointOutputStream:
        return self._raw.of_subtask()

    def get_raw_keyed_operator_state_output(self) -> KeyedStateCheckpointOutputStream:
        return self._raw.of_key_groups()


class InitializationContext(FunctionInitializationContext):
    """The argument of `initialize_state`."""

    def __init__(
        self,
        checkpoint_id: int | None,
        *,
        restored: bool,
        operator_store: OperatorStateStore,
        keyed_store: KeyedStateStore,
        raw: RestoredRawState,
    ) -> None:
        self._checkpoint_id = checkpoint_id
        self._restored = restored
        self._operator_store = operator_store
        self._keyed_store = keyed_store
        self._raw = raw

    def is_restored(self) -> bool:
        return self._restored

    def get_restored_checkpoint_id(self) -> int | None:
        return self._checkpoint_id

    def get_operator_state_store(self) -> OperatorStateStore:
        return self._operator_store

    def get_keyed_state_store(self) -> KeyedStateStore:
        return self._keyed_store

    def get_raw_operator_state_inputs(self) -> list[StatePartitionStreamProvider]:
        return self._raw.of_subtask()

    def get_raw_keyed_state_inputs(self) -> list[KeyGroupStatePartitionStreamProvider]:
        return self._raw.of_key_groups()
