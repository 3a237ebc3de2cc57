"""The harnesses, by the number and kind of inputs: one, two, or one and a broadcast one; keyed or not.

Each harness takes a function, or a callable that draws a whole pipeline:

    KeyedOneInputHarness(Count(), lambda order: order[0])
    OneInputHarness(lambda orders: orders.map(parse).key_by(lambda order: order[0]).process(Count()))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypedDict, Unpack

from ekorn.config.configuration import Configuration
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from ekorn.functions.record_functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeySelector,
    MapFunction,
    ReduceFunction,
)
from ekorn.functions.state.state_descriptors import MapStateDescriptor
from ekorn.program.streams.connected_streams import ConnectedStreams
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.testing.harness import Harness, Pipeline
from ekorn.types.type_information import TypeInformation

Key = Callable[[Any], Any] | KeySelector


class Options(TypedDict, total=False):
    """The options of every harness: see `Harness`."""

    side_outputs: Collection[OutputTag]
    parallelism: int
    max_parallelism: int | None
    configuration: Configuration | None
    processing_time: int


class OneInputHarness(Harness):
    """A function or a pipeline with one input.

    Args:
        under_test: A `MapFunction`, `FlatMapFunction`, `FilterFunction` or `ProcessFunction`, or a callable that
            takes the input stream and returns the result.
        type_info: Declared type of the input's records.
        output_type: Declared type of the function's results.
        options: See `Harness`.

    >>> from ekorn.datastream.functions import MapFunction
    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return value * 2
    >>> with OneInputHarness(Double()) as harness:
    ...     harness.process_element(21)
    ...     harness.output()
    [42]
    """

    def __init__(
        self,
        under_test: Function | Pipeline,
        *,
        type_info: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
        **options: Unpack[Options],
    ) -> None:
        if isinstance(under_test, Function):
            function = under_test
            super().__init__(lambda stream: _one_input(stream, function, output_type), [type_info], **options)
        else:
            super().__init__(_drawn(under_test, output_type), [type_info], **options)

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Push a record, with its event timestamp if it has one."""
        self._push(0, value, timestamp)

    def process_elements(self, *values: Any, timestamp: int | None = None) -> None:
        """Push records one after the other, all with the same timestamp."""
        for value in values:
            self._push(0, value, timestamp)

    def process_batch(self, values: Iterable[Any], timestamps: Sequence[int] | int | None = None) -> None:
        """Push records that arrive together, as one batch of columns if the pipeline has columns.

        Args:
            values: The records.
            timestamps: The timestamp of each record, or of all of them.
        """
        self._push_batch(0, values, timestamps)

    def process_watermark(self, timestamp: int) -> None:
        """Advance event time to a watermark, and fire the timers and windows that are due."""
        self._advance(timestamp, 0)

    def mark_idle(self, idle: bool = True) -> None:
        """Mark the input as idle, or as active again."""
        self._mark_idle(0, idle)


class KeyedOneInputHarness(OneInputHarness):
    """A function on a keyed stream.

    Args:
        function: A `KeyedProcessFunction`, or a map, flat-map, filter or reduce function.
        key_selector: The argument of `key_by`.
        key_type: Declared type of the keys.
        type_info: Declared type of the input's records.
        output_type: Declared type of the function's results.
        options: See `Harness`.
    """

    def __init__(
        self,
        function: Function,
        key_selector: Key,
        *,
        key_type: TypeInformation | None = None,
        type_info: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
        **options: Unpack[Options],
    ) -> None:
        _check(function)
        super().__init__(
            lambda stream: _one_input(stream.key_by(key_selector, key_type), function, output_type),
            type_info=type_info,
            **options,
        )


class TwoInputHarness(Harness):
    """A function or a pipeline with two inputs.

    Args:
        under_test: A `CoMapFunction`, `CoFlatMapFunction` or `CoProcessFunction`, or a callable that takes both
            input streams and returns the result.
        type_info1: Declared type of the first input's records.
        type_info2: Declared type of the second input's records.
        output_type: Declared type of the function's results.
        options: See `Harness`.
    """

    def __init__(
        self,
        under_test: Function | Pipeline,
        *,
        type_info1: TypeInformation | None = None,
        type_info2: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
        **options: Unpack[Options],
    ) -> None:
        types = [type_info1, type_info2]
        if isinstance(under_test, Function):
            function = under_test
            super().__init__(lambda a, b: _two_inputs(a.connect(b), function, output_type), types, **options)
        else:
            super().__init__(_drawn(under_test, output_type), types, **options)

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """Push a record into the first input."""
        self._push(0, value, timestamp)

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """Push a record into the second input."""
        self._push(1, value, timestamp)

    def process_batch1(self, values: Iterable[Any], timestamps: Sequence[int] | int | None = None) -> None:
        """Push records into the first input that arrive together, each with its timestamp, or all with one."""
        self._push_batch(0, values, timestamps)

    def process_batch2(self, values: Iterable[Any], timestamps: Sequence[int] | int | None = None) -> None:
        """Push records into the second input that arrive together, each with its timestamp, or all with one."""
        self._push_batch(1, values, timestamps)

    def process_watermark1(self, timestamp: int) -> None:
        """Advance event time of the first input. The operator's event time is the minimum of both inputs."""
        self._advance(timestamp, 0)

    def process_watermark2(self, timestamp: int) -> None:
        """Advance event time of the second input. The operator's event time is the minimum of both inputs."""
        self._advance(timestamp, 1)

    def process_watermark(self, timestamp: int) -> None:
        """Advance event time of both inputs."""
        self._advance(timestamp, 0, 1)

    def mark_idle1(self, idle: bool = True) -> None:
        """Mark the first input as idle, or as active again."""
        self._mark_idle(0, idle)

    def mark_idle2(self, idle: bool = True) -> None:
        """Mark the second input as idle, or as active again."""
        self._mark_idle(1, idle)


class KeyedTwoInputHarness(TwoInputHarness):
    """A function on two keyed streams, which share the keyed state.

    Args:
        function: A `KeyedCoProcessFunction`, or a co-map or co-flat-map function.
        key_selector1: Returns the key of the first input's records.
        key_selector2: Returns the key of the second input's records.
        key_type: Declared type of the keys.
        type_info1: Declared type of the first input's records.
        type_info2: Declared type of the second input's records.
        output_type: Declared type of the function's results.
        options: See `Harness`.
    """

    def __init__(
        self,
        function: Function,
        key_selector1: Key,
        key_selector2: Key,
        *,
        key_type: TypeInformation | None = None,
        type_info1: TypeInformation | None = None,
        type_info2: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
        **options: Unpack[Options],
    ) -> None:
        _check(function)

        def pipeline(first: DataStream, second: DataStream) -> DataStream:
            keyed = first.connect(second).key_by(key_selector1, key_selector2, key_type)
            return _two_inputs(keyed, function, output_type)

        super().__init__(pipeline, type_info1=type_info1, type_info2=type_info2, **options)


class BroadcastHarness(Harness):
    """A broadcast function: data on one side, keyed or not, and broadcast records on the other.

    Args:
        function: A `BroadcastProcessFunction`, or with a key selector a `KeyedBroadcastProcessFunction`.
        descriptors: The broadcast states.
        key_selector: Returns the key of the data's records; None for a stream without keys.
        key_type: Declared type of the keys.
        type_info: Declared type of the data's records.
        broadcast_type: Declared type of the broadcast records.
        output_type: Declared type of the function's results.
        options: See `Harness`.
    """

    def __init__(
        self,
        function: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        descriptors: MapStateDescriptor | Sequence[MapStateDescriptor],
        key_selector: Key | None = None,
        *,
        key_type: TypeInformation | None = None,
        type_info: TypeInformation | None = None,
        broadcast_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
        **options: Unpack[Options],
    ) -> None:
        states = [descriptors] if isinstance(descriptors, MapStateDescriptor) else list(descriptors)

        def pipeline(data: DataStream, broadcast: DataStream) -> DataStream:
            side = data if key_selector is None else data.key_by(key_selector, key_type)
            return side.connect(broadcast.broadcast(*states)).process(function, output_type)

        super().__init__(pipeline, [type_info, broadcast_type], **options)

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Push a record into the side that is not broadcast."""
        self._push(0, value, timestamp)

    def process_broadcast_element(self, value: Any, timestamp: int | None = None) -> None:
        """Push a broadcast record, which every subtask receives."""
        self._push(1, value, timestamp)

    def process_watermark(self, timestamp: int) -> None:
        """Advance event time of both sides."""
        self._advance(timestamp, 0, 1)

    def process_data_watermark(self, timestamp: int) -> None:
        """Advance event time of the side that is not broadcast. The operator's event time is the minimum of both."""
        self._advance(timestamp, 0)

    def process_broadcast_watermark(self, timestamp: int) -> None:
        """Advance event time of the broadcast side. The operator's event time is the minimum of both."""
        self._advance(timestamp, 1)


def _drawn(under_test: Pipeline, output_type: TypeInformation | None) -> Pipeline:
    if not callable(under_test):
        raise TypeError(f"a harness takes a function or a callable that draws a pipeline, got {under_test!r}")
    if output_type is not None:
        raise TypeError("output_type= is for a function: in a pipeline, give the type where the function is used")
    return under_test


def _check(function: Any) -> None:
    if not isinstance(function, Function):
        raise TypeError(
            f"a keyed harness takes a function, got {function!r}; for a pipeline that calls key_by itself, use the "
            "unkeyed harness"
        )


def _one_input(stream: DataStream, function: Function, output_type: TypeInformation | None) -> DataStream:
    match function:
        case MapFunction():
            return stream.map(function, output_type)
        case FlatMapFunction():
            return stream.flat_map(function, output_type)
        case ProcessFunction() | KeyedProcessFunction():
            return stream.process(function, output_type)
        case FilterFunction() if output_type is None:
            return stream.filter(function)
        case ReduceFunction() if output_type is None and isinstance(stream, KeyedStream):
            return stream.reduce(function)
    raise _does_not_fit(function, "one input", output_type)


def _two_inputs(connected: ConnectedStreams, function: Function, output_type: TypeInformation | None) -> DataStream:
    match function:
        case CoMapFunction():
            return connected.map(function, output_type)
        case CoFlatMapFunction():
            return connected.flat_map(function, output_type)
        case CoProcessFunction() | KeyedCoProcessFunction():
            return connected.process(function, output_type)
    raise _does_not_fit(function, "two inputs", output_type)


def _does_not_fit(function: Function, inputs: str, output_type: TypeInformation | None) -> TypeError:
    if output_type is not None and isinstance(function, (FilterFunction, ReduceFunction)):
        return TypeError(f"a {type(function).__name__} returns records of its input's type: leave out output_type=")
    return TypeError(f"a {type(function).__name__} is not a function of {inputs} that this harness can run by itself")
