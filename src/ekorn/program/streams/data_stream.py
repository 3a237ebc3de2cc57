"""`DataStream`: records without keys, and the transformations on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

from ekorn.errors import InvalidProgramError, warn
from ekorn.functions.batch_function import BatchFunction
from ekorn.functions.dead_letters import DEAD_LETTERS
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.process_functions import KeyedProcessFunction, ProcessFunction
from ekorn.functions.record_functions import FilterFunction, FlatMapFunction, Function, MapFunction
from ekorn.functions.watermark_strategy import WatermarkStrategy
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.count_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from ekorn.functions.windows.time_assigners import (
    Length,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from ekorn.graph.column_specs import BatchLibrary, ToColumnsSpec
from ekorn.graph.plan import function_text
from ekorn.graph.specs import FilterSpec, FlatMapSpec, MapSpec, ProcessSpec, ProjectSpec, TimestampsSpec
from ekorn.graph.stream_graph import Edge
from ekorn.legacy.selection import OutputSelector
from ekorn.legacy.time_characteristic import TimeCharacteristic
from ekorn.legacy.timestamp_extractors import (
    AscendingBy,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    TimestampExtractor,
    strategy_of,
)
from ekorn.program.checks.argument_checks import check_function, check_single_result, warn_if_nothing_is_returned
from ekorn.program.checks.pickling_check import check_sendable
from ekorn.program.streams.column_types import columns_of, row_type_from
from ekorn.program.streams.data_frame_methods import DataFrameMethods
from ekorn.program.streams.partitioning_methods import PartitioningMethods
from ekorn.types.composite_types import RowTypeInfo, TupleTypeInfo
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.program.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
    from ekorn.program.streams.column_stream import ColumnStream
    from ekorn.program.streams.connected_streams import ConnectedStreams
    from ekorn.program.streams.iterative_stream import IterativeStream, Step
    from ekorn.program.streams.stream_kinds import SplitStream
    from ekorn.program.streams.window_joins import CoGroupedStreams, JoinedStreams
    from ekorn.program.streams.windowed_stream import AllWindowedStream


_OF_SPARK = {
    "collect": "execute_and_collect() runs the job and returns the records",
    "foreach": "add_sink(...) calls a SinkFunction with each record",
    "show": "print() writes each record once the job runs",
    "take": "execute_and_collect(limit=...) runs the job and returns that many records",
}


class DataStream(PartitioningMethods, DataFrameMethods):
    """A stream of records. Every transformation returns a new stream; nothing runs before `execute`.

    Example:
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1, 2, 3]).map(lambda x: x + 1).get_name()
        'Map'
    """

    # ------------------------------------------------------------------------------ record by record

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Turn each record into one record.

        Args:
            func: A `MapFunction` or a callable of one argument.
            output_type: The type of the results; without it they are Python objects of any kind.
        """
        check_function("map", func, MapFunction, 1)
        check_single_result("map", func, "map")
        warn_if_nothing_is_returned("map", func, "map", "every result is None")
        return self._transform("Map", MapSpec(func), output_type)

    def flat_map(
        self, func: Callable[[Any], Any] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Turn each record into any number of records: the function yields, or returns an iterable or None."""
        check_function("flat_map", func, FlatMapFunction, 1)
        warn_if_nothing_is_returned("flat_map", func, "flat_map", "nothing is emitted")
        return self._transform("FlatMap", FlatMapSpec(func), output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keep the records for which the function returns true."""
        check_function("filter", func, FilterFunction, 1)
        check_single_result("filter", func, "filter")
        warn_if_nothing_is_returned("filter", func, "filter", "no record passes")
        return self._transform("Filter", FilterSpec(func), self._type())

    def process(
        self, func: ProcessFunction | KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Turn each record into any number of records, with side outputs and access to time."""
        # Flink: PyFlink runs a KeyedProcessFunction here as well, as long as it asks for no key, state or timer.
        kind: type[Function] = ProcessFunction
        if isinstance(func, KeyedProcessFunction):
            kind = KeyedProcessFunction
            warn(
                f"process(): {function_text(func)} is a KeyedProcessFunction, but this stream has no keys, so keyed "
                "state and timers would fail; call key_by(...) before process(...), or extend ProcessFunction"
            )
        check_function("process", func, kind, None)
        return self._transform("PROCESS", ProcessSpec(func), output_type)

    def project(self, *field_indexes: int) -> DataStream:
        """Keep some fields of each tuple or row, in the given order, as a tuple."""
        if not field_indexes:
            raise ValueError("project() needs at least one field")
        for index in field_indexes:
            if isinstance(index, bool) or not isinstance(index, int) or index < 0:
                raise ValueError(f"project() takes positions of at least 0, got {index!r}")
        return self._transform("Projection", ProjectSpec(field_indexes), self._projected_type(field_indexes))

    def assign_timestamps_and_watermarks(
        self,
        watermark_strategy: WatermarkStrategy
        | AssignerWithPeriodicWatermarks
        | AssignerWithPunctuatedWatermarks
        | TimestampExtractor,
    ) -> DataStream:
        """Give each record a timestamp, and replace the watermarks of the stream.

        Periodic watermarks are emitted at the end of every epoch, so a small bounded input has none before its end.
        Assigners of Flink 1.x are accepted too.
        """
        strategy = strategy_of(watermark_strategy)
        check_sendable("assign_timestamps_and_watermarks", watermark_strategy)
        return self._transform("Timestamps/Watermarks", TimestampsSpec(strategy), self._type())

    def assign_timestamps(self, extractor: TimestampExtractor) -> DataStream:
        """Give each record a timestamp, and replace the watermarks of the stream, by an extractor of Flink 1.0.

        Everything that `assign_timestamps_and_watermarks` takes is accepted too, which new programs call.
        """
        return self.assign_timestamps_and_watermarks(extractor)

    def assign_ascending_timestamps(self, func: Callable[[Any], int]) -> DataStream:
        """Give each record the timestamp that the function returns for it; timestamps must not decrease."""
        check_function("assign_ascending_timestamps", func, MapFunction, 1)
        return self.assign_timestamps_and_watermarks(AscendingBy(func))

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """Return the records that the operator yielded with a tag. Call it on the operator's own result."""
        if not isinstance(output_tag, OutputTag):
            raise TypeError(f"get_side_output() needs an OutputTag, got {output_tag!r}")
        node = self._operator("get_side_output")
        return DataStream(self._environment, (node.side_output(output_tag.tag_id, output_tag.type_info),))

    def get_dead_letters(self) -> DataStream:
        """Return the records that the operator could not process, as `DeadLetter`s. Call it on its own result.

        The operator sends dead letters if `on_record_error("dead-letter")` or `ekorn.on-record-error` says so.
        """
        return self.get_side_output(DEAD_LETTERS)

    # ------------------------------------------------------------------------------ as columns

    def to_columns(self, row_type: Any = None, max_rows: int = 65536) -> ColumnStream:
        """Return the stream as columns: batches of rows in Arrow's layout.

        Args:
            row_type: The columns: `DataTypes.ROW(...)`, `Types.ROW_NAMED(...)` or a schema of Arrow. By default those
                of the stream's declared type. Records are rows, tuples or dicts.
            max_rows: The most rows of a batch. Without a backlog a batch holds what has arrived together.
        """
        if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
            raise ValueError(f"to_columns() takes a max_rows above 0, got {max_rows!r}")
        declared = self._type() if row_type is None else row_type
        if row_type is None and not isinstance(declared, RowTypeInfo):
            raise InvalidProgramError(
                f"to_columns() needs the columns: the type of this stream is {self._type_text()}; pass "
                "to_columns(Types.ROW_NAMED([...], [...])), or declare rows where the stream is created"
            )
        columns = row_type_from(declared, "to_columns")
        spec = ToColumnsSpec(columns, max_rows)
        node = self._environment._graph.operator("To Columns", spec, self._edges, columns_of(columns), like_input=True)
        return self._kinds.column_stream(self._environment, (Edge(node),), columns)

    def map_batches(
        self, func: Callable[[Any], Any] | BatchFunction, output_type: Any, library: BatchLibrary = "arrow"
    ) -> ColumnStream:
        """Turn batches of this stream's rows, as columns, into batches of columns: see `ColumnStream.map_batches`."""
        return self.to_columns().map_batches(func, output_type, library)

    # ------------------------------------------------------------------------------ with other streams

    def union(self, *streams: DataStream) -> DataStream:
        """Merge this stream with others of the same type. A stream merged with itself has each record twice."""
        edges = self._edges
        for stream in streams:
            if not isinstance(stream, DataStream):
                raise TypeError(f"union() needs streams, got {stream!r}")
            if stream._environment is not self._environment:
                raise InvalidProgramError("union() needs streams of the same environment")
            if stream._type() != self._type():
                raise InvalidProgramError(
                    f"union() needs streams of one type, got {self._type_text()} and {stream._type_text()}; "
                    "declare the type of one of them, or map it"
                )
            edges += stream._edges
        return DataStream(self._environment, edges)

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Bring another stream, of any type, to the same operator: `.map(...)`, `.flat_map(...)`, `.process(...)`.

        If the other stream is the result of `broadcast(descriptor)`, `.process(...)` sees the broadcast state.
        """
        if isinstance(ds, self._kinds.broadcast_stream):
            return self._kinds.broadcast_connected_stream(self, ds, ds.broadcast_state_descriptors)
        return self._kinds.connected_streams(self, ds)

    def join(self, other: DataStream) -> JoinedStreams:
        """Join with another stream in windows: `.where(...).equal_to(...).window(...).apply(...)`."""
        return self._kinds.joined_streams(self, other)

    def co_group(self, other: DataStream) -> CoGroupedStreams:
        """Group with another stream in windows: `.where(...).equal_to(...).window(...).apply(...)`."""
        return self._kinds.co_grouped_streams(self, other)

    # ------------------------------------------------------------------------------ split and loops

    def split(self, output_selector: Callable[[Any], Iterable[str]] | OutputSelector) -> SplitStream:
        """Give each record names by which streams select it, as in Flink 1.x: `.select("even")`."""
        check_function("split", output_selector, OutputSelector, 1)
        return self._kinds.split_stream(self, output_selector)

    def iterate(self, max_wait_time_millis: int = 0) -> IterativeStream:
        """Begin a loop: the stream passed to `close_with` is fed back to this point.

        Args:
            max_wait_time_millis: The loop ends when this stream has ended and no record was fed back for this long.
                With 0 the loop runs until the job is cancelled.
        """
        return self._kinds.iterative_stream(self, max_wait_time_millis)

    def iterate_with(self, step: Step, max_wait_time_millis: int = 0) -> DataStream:
        """Draw a loop with one function: `step(stream)` returns the feedback stream and the stream that leaves it."""
        loop = self.iterate(max_wait_time_millis)
        feedback, output = step(loop)
        loop.close_with(feedback)
        return output

    # ------------------------------------------------------------------------------ windows without keys

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Group all records of the stream into windows, in one subtask."""
        return self._kinds.all_windowed_stream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Group records into windows of `size` records; with a slide, one begins every `slide` records.

        Only full windows fire.
        """
        if slide == 0:
            return self.window_all(CountTumblingWindowAssigner.of(size))
        return self.window_all(CountSlidingWindowAssigner.of(size, slide))

    def time_window_all(self, size: Length, slide: Length | None = None) -> AllWindowedStream:
        """Group records into tumbling or sliding windows by the environment's time characteristic, as in Flink 1.x."""
        return self.window_all(self._time_windows(size, slide))

    def _time_windows(self, size: Length, slide: Length | None) -> WindowAssigner[Any, Any]:
        by_clock = self._environment.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime
        if slide is None:
            return (TumblingProcessingTimeWindows if by_clock else TumblingEventTimeWindows).of(size)
        return (SlidingProcessingTimeWindows if by_clock else SlidingEventTimeWindows).of(size, slide)

    def _instead_of(self, name: str) -> str | None:
        if name in _OF_SPARK:
            return _OF_SPARK[name]
        if not hasattr(self._kinds.keyed_stream, name):
            return None
        without_keys = f", or use {name}_all()" if hasattr(DataStream, f"{name}_all") else ""
        return f"it is a method of keyed streams: call key_by(...) before {name}(){without_keys}"

    def _projected_type(self, positions: tuple[int, ...]) -> TypeInformation:
        declared = self._type()
        if not isinstance(declared, (TupleTypeInfo, RowTypeInfo)):
            raise TypeError(
                f"project() needs a stream of declared tuples or rows, but its type is {self._type_text()}; "
                "declare it where the stream is created, with Types.TUPLE([...])"
            )
        types = declared.get_field_types()
        for position in positions:
            if position >= len(types):
                raise IndexError(f"project() of field {position}: {declared} has {len(types)} fields")
        return Types.TUPLE([types[position] for position in positions])
