"""The contexts that functions are given: with each record, and when they take or restore a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from ekorn.codegen.chain_operator import Out
from ekorn.errors import UnsupportedOperationError, preview
from ekorn.functions.output_tag import OutputTag
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


class EmitsToSides(Protocol):
    """The part of an operator that `SideOutputs` uses. The subtask sets both attributes."""

    side_out: dict[str, Out]
    relief: Iterator[bool]


class SideOutputs:
    """Emits records to the side outputs of an operator while its function runs: `output` of contexts."""

    def __init__(self, operator: EmitsToSides) -> None:
        self._operator = operator

    def emit(self, tag: OutputTag, value: Any, time_ms: int | None) -> None:
        """Emit a record; records of a side output that nobody reads are dropped."""
        if tag.__class__ is not OutputTag:
            raise TypeError(f"output() takes an OutputTag and a record, got {preview(tag)}")
        to_side = self._operator.side_out.get(tag.tag_id)
        if to_side is not None:
            to_side(value, time_ms)
            next(self._operator.relief, None)  # full blobs leave, as between the results that a function yields


class ElementContext(KeyedProcessFunction.Context, SinkContext):
    """The context of process functions and sinks. The generated loop sets `time` for each record.

    Args:
        clocks: The timer service.
        cell: Holds the current key; None without keys.
        sides: The side outputs of the operator; None for a sink, which has none.
    """

    __slots__ = ("_cell", "_clocks", "_sides", "time")

    def __init__(self, clocks: TimerService, cell: list[Any] | None, sides: SideOutputs | None = None) -> None:
        self.time: int | None = None
        self._clocks = clocks
        self._cell = cell
        self._sides = sides

    def output(self, output_tag: OutputTag, value: Any) -> None:
        if self._sides is None:
            raise UnsupportedOperationError("a sink has no side outputs; emit to them in a process() before the sink")
        self._sides.emit(output_tag, value, self.time)

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
