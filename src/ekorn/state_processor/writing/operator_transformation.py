"""`OperatorTransformation`: how the state of one operator is filled from a stream or a data set."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.runner import runs_on_spark
from ekorn.functions.record_functions import AggregateFunction, ReduceFunction
from ekorn.functions.watermark_strategy import TimestampAssigner, WatermarkStrategy
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.evictors import Evictor
from ekorn.functions.windows.trigger_contract import Trigger
from ekorn.functions.windows.window_functions import ProcessWindowFunction, WindowFunction
from ekorn.graph.specs import SavepointFilesSpec
from ekorn.graph.stream_graph import checked_max_parallelism
from ekorn.program.checks.argument_checks import check_function
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.bootstrapped_state import bootstrapped, check_bounded
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.key_selection import KeySelection
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.program.streams.windowed_stream import WindowedStream
from ekorn.state_processor.operator_identifier import OperatorIdentifier
from ekorn.state_processor.writing.bootstrap_functions import (
    BroadcastStateBootstrapFunction,
    FillBroadcastState,
    KeyedStateBootstrapFunction,
    StateBootstrapFunction,
)
from ekorn.types.by_value import dumps
from ekorn.types.data_types import DataTypes
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

__all__ = [
    "KeyedOperatorTransformation",
    "OneInputOperatorTransformation",
    "OperatorTransformation",
    "StateBootstrapTransformation",
    "WindowedOperatorTransformation",
    "stream_of",
]


@dataclass(frozen=True)
class StateBootstrapTransformation:
    """How the state of an operator is filled. `SavepointWriter.with_operator` takes it."""

    environment: StreamExecutionEnvironment
    draw: Callable[[], DataStream]  # draws the operator and returns its output
    one_subtask: bool = False
    max_parallelism: int | None = None  # None: that of the savepoint

    def snapshots(self, operator: OperatorIdentifier, files: SavepointFilesSpec, max_parallelism: int) -> DataStream:
        """Draw the operator, and return the stream of the snapshots that its subtasks write."""
        return bootstrapped(
            self.draw().name(operator.uid or operator.operator_id),
            files,
            operator_id=operator.operator_id,
            uid=operator.uid,
            max_parallelism=self.max_parallelism or max_parallelism,
            one_subtask=self.one_subtask,
        )


class OperatorTransformation:
    """Begins the description of an operator's state.

    Example:
        OperatorTransformation.bootstrap_with(accounts).key_by(lambda a: a.id).transform(FillBalances())
    """

    @staticmethod
    def bootstrap_with(data: DataStream | DataSet) -> OneInputOperatorTransformation:
        """Fill the state from the records of a bounded stream, or of a data set, which is computed now.

        Rows of a DataFrame are those of `env.from_data_frame(df)`, of either API.
        """
        if isinstance(data, DataSet):
            return OneInputOperatorTransformation(stream_of(data))
        if not isinstance(data, DataStream) or isinstance(data, KeyedStream):
            raise TypeError(
                f"bootstrap_with() takes a DataStream or a DataSet, and key_by() is called on its result; got {data!r}"
            )
        check_bounded("bootstrap_with()", data)
        return OneInputOperatorTransformation(data)


class OneInputOperatorTransformation:
    """The records that fill the state."""

    def __init__(self, stream: DataStream, max_parallelism: int | None = None) -> None:
        self._stream = stream
        self._max_parallelism = max_parallelism

    def assign_timestamps(
        self, assigner: TimestampAssigner | Callable[[Any, int], int]
    ) -> OneInputOperatorTransformation:
        """Give the records timestamps, for windows and for `ctx.timestamp()`."""
        strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)
        stream = self._stream.assign_timestamps_and_watermarks(strategy)
        return OneInputOperatorTransformation(stream, self._max_parallelism)

    def set_max_parallelism(self, max_parallelism: int) -> OneInputOperatorTransformation:
        """Set the number of key groups of the state; by default that of the savepoint."""
        return OneInputOperatorTransformation(self._stream, checked_max_parallelism(max_parallelism))

    def transform(
        self, function: StateBootstrapFunction | BroadcastStateBootstrapFunction
    ) -> StateBootstrapTransformation:
        """Fill operator state."""
        stream = self._stream
        if isinstance(function, BroadcastStateBootstrapFunction):
            filling: StateBootstrapFunction = FillBroadcastState(function)
        else:
            check_function("transform", function, StateBootstrapFunction, None)
            filling = function
        return StateBootstrapTransformation(
            stream.get_execution_environment(),
            lambda: stream.process(filling),
            one_subtask=filling is not function,
            max_parallelism=self._max_parallelism,
        )

    def key_by(
        self, key_selector: KeySelection, key_type: TypeInformation | None = None
    ) -> KeyedOperatorTransformation:
        """Give the records keys, exactly as the job that restores the state does."""
        return KeyedOperatorTransformation(self._stream.key_by(key_selector, key_type), self._max_parallelism)


class KeyedOperatorTransformation:
    """The records that fill keyed state, by key."""

    def __init__(self, stream: KeyedStream, max_parallelism: int | None) -> None:
        self._stream = stream
        self._max_parallelism = max_parallelism

    def transform(self, function: KeyedStateBootstrapFunction) -> StateBootstrapTransformation:
        """Fill keyed state."""
        check_function("transform", function, KeyedStateBootstrapFunction, None)
        stream = self._stream
        return StateBootstrapTransformation(
            stream.get_execution_environment(),
            lambda: stream.process(function),
            max_parallelism=self._max_parallelism,
        )

    def window(self, assigner: WindowAssigner[Any, Any]) -> WindowedOperatorTransformation:
        """Fill the windows of an operator that has this assigner."""
        return WindowedOperatorTransformation(self._stream.window(assigner), self._max_parallelism)


class WindowedOperatorTransformation:
    """The windows that are filled. Trigger, evictor and functions are those of the operator that restores them."""

    def __init__(self, windows: WindowedStream, max_parallelism: int | None) -> None:
        self._windows = windows
        self._max_parallelism = max_parallelism

    def trigger(self, trigger: Trigger[Any, Any]) -> WindowedOperatorTransformation:
        """Replace the assigner's own trigger."""
        self._windows.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> WindowedOperatorTransformation:
        """Keep all records of a window, as the operator does that evicts some of them."""
        self._windows.evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: Any) -> WindowedOperatorTransformation:
        """Set how long windows are kept after their end."""
        self._windows.allowed_lateness(time_ms)
        return self

    def reduce(
        self, reduce_function: Callable[[Any, Any], Any] | ReduceFunction, window_function: Any = None
    ) -> StateBootstrapTransformation:
        """Fill windows that reduce their records."""
        return self._drawn(lambda windows: windows.reduce(reduce_function, window_function))

    def aggregate(
        self, aggregate_function: AggregateFunction, window_function: Any = None
    ) -> StateBootstrapTransformation:
        """Fill windows that aggregate their records."""
        return self._drawn(lambda windows: windows.aggregate(aggregate_function, window_function))

    def apply(self, window_function: WindowFunction[Any, Any, Any, Any]) -> StateBootstrapTransformation:
        """Fill windows that keep their records for a `WindowFunction`."""
        return self._drawn(lambda windows: windows.apply(window_function))

    def process(
        self, process_window_function: ProcessWindowFunction[Any, Any, Any, Any]
    ) -> StateBootstrapTransformation:
        """Fill windows that keep their records for a `ProcessWindowFunction`."""
        return self._drawn(lambda windows: windows.process(process_window_function))

    def _drawn(self, draw: Callable[[WindowedStream], DataStream]) -> StateBootstrapTransformation:
        windows = self._windows
        environment = windows.get_execution_environment()
        return StateBootstrapTransformation(environment, lambda: draw(windows), max_parallelism=self._max_parallelism)


_PICKLED = DataTypes.ROW([DataTypes.FIELD("record", DataTypes.BYTES())])


def stream_of(data_set: DataSet) -> DataStream:
    """Compute a data set, and return the bounded stream of its records.

    The stream belongs to the environment of streams that goes with the data set's. On Spark the records stay there
    until the job that reads the stream is submitted, and then pass through files, as those of a DataFrame do: none
    passes the driver.
    """
    env = data_set.get_execution_environment().stream_environment()
    if not runs_on_spark():
        return env.from_collection(data_set.collect(), data_set.get_type())
    frame = data_set.map(_as_row).to_data_frame(_PICKLED)
    return env.from_data_frame(frame, source_name=data_set.get_name()).map(_record, data_set.get_type())


def _as_row(record: Any) -> Row:
    return Row(dumps(record))


def _record(row: Row) -> Any:
    return pickle.loads(row[0])
