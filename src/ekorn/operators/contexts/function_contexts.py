"""The contexts that functions are given: with each record, and when they take or restore a snapshot."""

from __future__ import annotations

from typing import Any

from ekorn.errors import UnsupportedOperationError
from ekorn.functions.process_functions import KeyedProcessFunction
from ekorn.functions.sink_contract import SinkContext
from ekorn.functions.state.checkpointed import FunctionInitializationContext, FunctionSnapshotContext
from ekorn.functions.state.raw_streams import (
    KeyedStateCheckpointOutputStream,
    KeyGroupStatePartitionStreamProvider,
    OperatorStateCheckpointOutputStream,
    StatePartitionStreamProvider,
)
from ekorn.functions.state.state_stores import KeyedStateStore, OperatorStateStore
from ekorn.functions.timer_service import TimerService
from ekorn.keygroups import user_key
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.state.raw_state import RawOutputs, RestoredRawState
from ekorn.types.time_bounds import MIN_TIMESTAMP


class Clocks(TimerService):
    """The timer service of an operator without timers: it only reports the watermark and the processing time."""

    def __init__(self, environment: SubtaskEnvironment) -> None:
        self._clock = environment.clock
        self.watermark_ms = MIN_TIMESTAMP

    def current_processing_time(self) -> int:
        return self._clock.now_ms()

    def current_watermark(self) -> int:
        return self.watermark_ms

    def register_event_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def _refuse(self) -> None:
        raise UnsupportedOperationError("timers need a keyed stream: call key_by before process")


class ElementContext(KeyedProcessFunction.Context, SinkContext):
    """The context of process functions and sinks. The generated loop sets `time` for each record."""

    __slots__ = ("_cell", "_clocks", "time")

    def __init__(self, clocks: TimerService, cell: list[Any] | None) -> None:
        self.time: int | None = None
        self._clocks = clocks
        self._cell = cell

    def timestamp(self) -> int | None:
        return self.time

    def timer_service(self) -> TimerService:
        return self._clocks

    def get_current_key(self) -> Any:
        if self._cell is None:
            raise UnsupportedOperationError("there is no current key: the stream has no keys; call key_by first")
        return user_key(self._cell[0])

    def current_watermark(self) -> int:
        return self._clocks.current_watermark()

    def current_processing_time(self) -> int:
        return self._clocks.current_processing_time()


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
