"""`DataStream`: records without keys, and the transformations on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

from tamias.config.time_characteristic import TimeCharacteristic
from tamias.connectors.delivery import SupportsPreprocessing
from tamias.errors import InvalidProgramError
from tamias.functions.assigner_contract import WindowAssigner
from tamias.functions.count_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from tamias.functions.output_tag import OutputTag
from tamias.functions.process_functions import KeyedProcessFunction, ProcessFunction
from tamias.functions.record_functions import (
    FieldKeySelector,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
)
from tamias.functions.selection import OutputSelector
from tamias.functions.sink_contract import Sink, SinkFunction
from tamias.functions.state_descriptors import MapStateDescriptor
from tamias.functions.time_assigners import (
    Length,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tamias.functions.timestamp_extractors import (
    AscendingBy,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    strategy_of,
)
from tamias.functions.watermark_strategy import WatermarkStrategy
from tamias.graph.specs import (
    Broadcast,
    CollectSpec,
    Custom,
    FilterSpec,
    FlatMapSpec,
    Forward,
    Global,
    KeySpec,
    MapSpec,
    OperatorSpec,
    Partitioning,
    PrintSpec,
    ProcessSpec,
    ProjectSpec,
    Rebalance,
    Rescale,
    Shuffle,
    SinkFunctionSpec,
    TimestampsSpec,
    WriterSpec,
)
from tamias.graph.stream_graph import Chaining, Edge, Node
from tamias.program.closeable_iterator import CloseableIterator
from tamias.program.closure_check import check_function, check_instance, check_sendable, check_single_result
from tamias.program.data_stream_sink import DataStreamSink
from tamias.program.operator_settings import OperatorSettings
from tamias.types.composite_types import ObjectArrayTypeInfo, PrimitiveArrayTypeInfo, RowTypeInfo, TupleTypeInfo
from tamias.types.factory import Types
from tamias.types.type_information import TypeInformation

if TYPE_CHECKING:
    from tamias.config.execution_config import ExecutionConfig
    from tamias.program.broadcast_stream import BroadcastConnectedStream, BroadcastStream
    from tamias.program.connected_streams import ConnectedStreams
    from tamias.program.iterations import IterativeStream, Step
    from tamias.program.keyed_stream import KeyedStream
    from tamias.program.split_stream import SplitStream
    from tamias.program.stream_execution_environment import StreamExecutionEnvironment
    from tamias.program.window_joins import CoGroupedStreams, JoinedStreams
    from tamias.program.windowed_stream import AllWindowedStream

KeySelection = Callable[[Any], Any] | KeySelector | int | str | Sequence[int | str]
"""A function, a KeySelector, or fields by position or name."""


class DataStream(OperatorSettings):
    """A stream of records. Every transformation gives a new one; nothing runs before `execute`.

    Example:
        >>> from tamias.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1, 2, 3]).map(lambda x: x + 1).get_name()
        'Map'
    """

    def __init__(self, environment: StreamExecutionEnvironment, edges: tuple[Edge, ...]) -> None:
        self._environment = environment
        self._edges = edges

    # ------------------------------------------------------------------------------ about this stream

    def get_name(self) -> str:
        """Name of the operator that this stream comes from."""
        return self._operator("get_name").name

    def get_type(self) -> TypeInformation:
        """Type of the records; `Types.PICKLED_BYTE_ARRAY()`, any Python object, where none was declared."""
        return self._type() or Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that this stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """The environment's execution settings."""
        return self._environment.get_config()

    def set_max_parallelism(self, max_parallelism: int) -> DataStream:
        """Set the operator's maximum parallelism, from 1 to 32768: the number of its key groups."""
        self._operator("set_max_parallelism").set_max_parallelism(max_parallelism)
        return self

    def force_non_parallel(self) -> DataStream:
        """Fix the parallelism and the maximum parallelism of the operator to 1."""
        self._operator("force_non_parallel").force_non_parallel()
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> DataStream:
        """Set how long the operator's output may wait to be sent with more; it changes latency only."""
        self._operator("set_buffer_timeout").set_buffer_timeout(timeout_millis)
        return self

    def start_new_chain(self) -> DataStream:
        """Let the operator share a vertex with what follows it, and not with what comes before it."""
        self._operator("start_new_chain").chaining = Chaining.HEAD
        return self

    # ------------------------------------------------------------------------------ record by record

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record in, one record out.

        Args:
            func: a `MapFunction` or a callable of one argument.
            output_type: type of the results; without it they are Python objects of any kind.
        """
        check_function("map", func, MapFunction, 1)
        check_single_result("map", func, "map")
        return self._transform("Map", MapSpec(func), output_type)

    def flat_map(
        self, func: Callable[[Any], Any] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """One record in, any number of records out: the function yields, or returns an iterable or None."""
        check_function("flat_map", func, FlatMapFunction, 1)
        return self._transform("FlatMap", FlatMapSpec(func), output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keep the records for which the function is true."""
        check_function("filter", func, FilterFunction, 1)
        check_single_result("filter", func, "filter")
        return self._transform("Filter", FilterSpec(func), self._type())

    def process(
        self, func: ProcessFunction | KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """One record in, any number out, with side outputs and both clocks."""
        # Flink: PyFlink runs a KeyedProcessFunction here as well, as long as it asks for no key, state or timer.
        kind = KeyedProcessFunction if isinstance(func, KeyedProcessFunction) else ProcessFunction
        check_function("process", func, kind, None)
        return self._transform("PROCESS", ProcessSpec(func), output_type)

    def project(self, *field_indexes: int) -> DataStream:
        """Keep some fields of each tuple or row, in the order given, as a tuple."""
        if not field_indexes:
            raise ValueError("project() needs at least one field")
        for index in field_indexes:
            if isinstance(index, bool) or not isinstance(index, int) or index < 0:
                raise ValueError(f"project() takes positions from 0 on, got {index!r}")
        return self._transform("Projection", ProjectSpec(field_indexes), self._projected_type(field_indexes))

    def assign_timestamps_and_watermarks(
        self,
        watermark_strategy: WatermarkStrategy | AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks,
    ) -> DataStream:
        """Give each record a timestamp, and the stream watermarks in place of those it has.

        Periodic watermarks are emitted at the end of every epoch, so a small bounded input sees none before its end.
        An assigner as written for Flink 1.x is taken as well.
        """
        strategy = strategy_of(watermark_strategy)
        check_sendable("assign_timestamps_and_watermarks", watermark_strategy)
        return self._transform("Timestamps/Watermarks", TimestampsSpec(strategy), self._type())

    def assign_ascending_timestamps(self, func: Callable[[Any], int]) -> DataStream:
        """Give each record the timestamp that a function of it says; timestamps must not go back."""
        check_function("assign_ascending_timestamps", func, MapFunction, 1)
        return self.assign_timestamps_and_watermarks(AscendingBy(func))

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """The records that the operator yielded with a tag. Call it on the operator's own result."""
        if not isinstance(output_tag, OutputTag):
            raise TypeError(f"get_side_output() needs an OutputTag, got {output_tag!r}")
        node = self._operator("get_side_output")
        return DataStream(self._environment, (node.side_output(output_tag.tag_id, output_tag.type_info),))

    # ------------------------------------------------------------------------------ keys and partitions

    def key_by(self, key_selector: KeySelection, key_type: TypeInformation | None = None) -> KeyedStream:
        """Bring records with equal keys to one subtask, and give functions state per key.

        Args:
            key_selector: a `KeySelector`, a callable of one argument, a field by position or name, or a
                list of fields; fields make the key a tuple.
            key_type: type of the key.
        """
        from tamias.program.keyed_stream import KeyedStream

        return KeyedStream(self._environment, self._edges, key_spec("key_by", key_selector, key_type))

    def partition_custom(
        self, partitioner: Callable[[Any, int], int] | Partitioner, key_selector: KeySelection
    ) -> DataStream:
        """Send each record to the subtask that `partitioner(key, number_of_subtasks)` names."""
        check_function("partition_custom", partitioner, Partitioner, 2)
        check_single_result("partition_custom", partitioner, "partition")
        return self._partitioned(Custom(partitioner, key_spec("partition_custom", key_selector, None)))

    def forward(self) -> DataStream:
        """Send records to the subtask with the same number; both sides need the same parallelism."""
        return self._partitioned(Forward())

    def rebalance(self) -> DataStream:
        """Send records to all subtasks in turn."""
        return self._partitioned(Rebalance())

    def rescale(self) -> DataStream:
        """Send records in turn to the few subtasks that belong to this one, without crossing all of them."""
        return self._partitioned(Rescale())

    def shuffle(self) -> DataStream:
        """Send each record to a random subtask."""
        return self._partitioned(Shuffle())

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Send every record to every subtask; with descriptors, to be connected with a stream that sees the state.

        Args:
            broadcast_state_descriptor: declares a map that every subtask holds and this stream's records change.
            other_broadcast_state_descriptors: more of them, with other names.
        """
        from tamias.program.broadcast_stream import BroadcastStream

        everywhere = self._partitioned(Broadcast())
        if broadcast_state_descriptor is None and not other_broadcast_state_descriptors:
            return everywhere
        descriptors: Any = [broadcast_state_descriptor, *other_broadcast_state_descriptors]
        return BroadcastStream(everywhere, descriptors)

    def global_(self) -> DataStream:
        """Send all records to the first subtask."""
        return self._partitioned(Global())

    def global_partition(self) -> DataStream:
        """The same as `global_`."""
        return self.global_()

    def union(self, *streams: DataStream) -> DataStream:
        """All records of this stream and others of the same type; a stream with itself gives each twice."""
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

    # ------------------------------------------------------------------------------ by name

    def split(self, output_selector: Callable[[Any], Iterable[str]] | OutputSelector) -> SplitStream:
        """Give each record names, by which streams of them are then selected: `.select("even")`, as in Flink 1.x."""
        from tamias.program.split_stream import SplitStream

        check_function("split", output_selector, OutputSelector, 1)
        return SplitStream(self, output_selector)

    # ------------------------------------------------------------------------------ loops

    def iterate(self, max_wait_time_millis: int = 0) -> IterativeStream:
        """Begin a loop: what `close_with` is given comes back here, beside this stream.

        Args:
            max_wait_time_millis: the loop ends when this stream has ended and nothing was fed back for so long;
                0: it goes on until the job is cancelled.
        """
        from tamias.program.iterations import IterativeStream

        return IterativeStream(self, max_wait_time_millis)

    def iterate_with(self, step: Step, max_wait_time_millis: int = 0) -> DataStream:
        """A loop as one function: `step(stream)` gives the stream to feed back and the stream that leaves the loop."""
        loop = self.iterate(max_wait_time_millis)
        feedback, output = step(loop)
        loop.close_with(feedback)
        return output

    # ------------------------------------------------------------------------------ windows over everything

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Group all records of the stream into windows; they come together in one subtask."""
        from tamias.program.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of so many records; with a slide, one begins every so many and only full ones fire."""
        if slide == 0:
            return self.window_all(CountTumblingWindowAssigner.of(size))
        return self.window_all(CountSlidingWindowAssigner.of(size, slide))

    def time_window_all(self, size: Length, slide: Length | None = None) -> AllWindowedStream:
        """Tumbling or sliding windows by the environment's time characteristic, as in Flink 1.x."""
        return self.window_all(self._time_windows(size, slide))

    def _time_windows(self, size: Length, slide: Length | None) -> WindowAssigner[Any, Any]:
        by_clock = self._environment.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime
        if slide is None:
            return (TumblingProcessingTimeWindows if by_clock else TumblingEventTimeWindows).of(size)
        return (SlidingProcessingTimeWindows if by_clock else SlidingEventTimeWindows).of(size, slide)

    # ------------------------------------------------------------------------------ with another stream

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Bring another stream, of any type, to the same operator: `.map(...)`, `.flat_map(...)`, `.process(...)`.

        With the result of `broadcast(descriptor)`, `.process(...)` sees the state that its records make.
        """
        from tamias.program.broadcast_stream import BroadcastConnectedStream, BroadcastStream
        from tamias.program.connected_streams import ConnectedStreams

        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    def join(self, other: DataStream) -> JoinedStreams:
        """Join with another stream in windows: `.where(...).equal_to(...).window(...).apply(...)`."""
        from tamias.program.window_joins import JoinedStreams

        return JoinedStreams(self, other)

    def co_group(self, other: DataStream) -> CoGroupedStreams:
        """Group with another stream in windows: `.where(...).equal_to(...).window(...).apply(...)`."""
        from tamias.program.window_joins import CoGroupedStreams

        return CoGroupedStreams(self, other)

    # ------------------------------------------------------------------------------ where records go

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write each record to standard output, behind the identifier and the subtask if there are any."""
        if sink_identifier is not None and not isinstance(sink_identifier, str):
            raise TypeError(f"print() takes a string to put before each line, got {sink_identifier!r}")
        return self._sink("Print to Std. Out", PrintSpec(sink_identifier))

    def add_sink(self, sink_func: SinkFunction[Any]) -> DataStreamSink:
        """Hand each record to a `SinkFunction`."""
        check_function("add_sink", sink_func, SinkFunction, None)
        return self._sink("Unnamed", SinkFunctionSpec(sink_func))

    def sink_to(self, sink: Sink[Any]) -> DataStreamSink:
        """Write the records to a sink, such as a `FileSink`."""
        check_instance("sink_to", sink, Sink)
        if isinstance(sink, SupportsPreprocessing):
            transformer = sink.get_transformer()
            if transformer is not None:
                prepared: DataStream = transformer.apply(self)
                return prepared._sink("Writer", WriterSpec(sink))
        return self._sink("Writer", WriterSpec(sink))

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, limit: None = None) -> CloseableIterator: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[Any]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job and bring this stream's records to the program.

        Args:
            job_execution_name: name of the job.
            limit: stop after so many records and return them as a list; without it an iterator is returned,
                which stops the job when it is closed.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0):
            raise ValueError(f"execute_and_collect() takes a limit above 0, got {limit!r}")
        collector = self._collector()
        try:
            records = CloseableIterator(self._environment._submit(job_execution_name, collect=True))
        except BaseException:
            # The program may correct what was wrong and run again; the collector must not be in that job.
            self._environment._graph.discard(collector)
            raise
        if limit is None:
            return records
        with records:
            return [record for _, record in zip(range(limit), records, strict=False)]

    # ------------------------------------------------------------------------------ building the graph

    def _collector(self) -> Node:
        spec = CollectSpec()
        return self._environment._graph.sink("Data stream collect sink", spec, self._edges, like_input=True)

    def _type(self) -> TypeInformation | None:
        return self._edges[0].type_info

    def _type_text(self) -> str:
        return "an undeclared one" if self._type() is None else str(self._type())

    def _transform(
        self, name: str, spec: OperatorSpec, output_type: TypeInformation | None, key: KeySpec | None = None
    ) -> DataStream:
        check_output_type(name, output_type)
        node = self._environment._graph.operator(name, spec, self._edges, output_type, key=key)
        return DataStream(self._environment, (Edge(node),))

    def _sink(self, name: str, spec: OperatorSpec) -> DataStreamSink:
        return DataStreamSink(self._environment, self._environment._graph.sink(name, spec, self._edges))

    def _partitioned(self, partitioning: Partitioning) -> DataStream:
        return DataStream(self._environment, tuple(edge.partitioned(partitioning) for edge in self._edges))

    def _projected_type(self, positions: tuple[int, ...]) -> TypeInformation:
        declared = self._type()
        if not isinstance(declared, (TupleTypeInfo, RowTypeInfo)):
            raise TypeError(
                f"project() needs a stream of declared tuples or rows, and this one's type is {self._type_text()}; "
                "declare it where the stream is made, with Types.TUPLE([...])"
            )
        types = declared.get_field_types()
        for position in positions:
            if position >= len(types):
                raise IndexError(f"project() of field {position}: {declared} has {len(types)} fields")
        return Types.TUPLE([types[position] for position in positions])

    def _operator(self, call: str) -> Node:
        if len(self._edges) > 1:
            raise InvalidProgramError(
                f"{call}() belongs to an operator, and a union is none: call it on the streams before union()"
            )
        edge = self._edges[0]
        if edge.tag is not None:
            raise InvalidProgramError(
                f"{call}() belongs to an operator, and a side output is none: call it before get_side_output()"
            )
        if isinstance(edge.partitioning, Custom):
            # Flink: in PyFlink an operator stands behind a custom partitioning, and programs set its parallelism.
            node = self._environment._graph.operator("Partition Custom", MapSpec(_same), self._edges, self._type())
            self._edges = (Edge(node),)
            return node
        if edge.partitioning is not None:
            partitioning = type(edge.partitioning).__name__.lower()
            raise InvalidProgramError(
                f"{call}() belongs to an operator, and the result of a {partitioning} partitioning is none: "
                "call it before the partitioning"
            )
        return edge.source

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is part of the program, not of a function: "
            "use union or side outputs to bring streams together or apart"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(edge.source.full_name for edge in self._edges)})"


def _same(record: Any) -> Any:
    return record


def key_spec(call: str, key_selector: KeySelection, key_type: TypeInformation | None) -> KeySpec:
    """What `key_by` was given, as a value."""
    check_output_type(call, key_type, "key_type")
    if key_type is not None and _holds_an_array(key_type):
        raise InvalidProgramError(
            f"{call}(): {key_type} cannot be the type of a key, since it holds an array; use a tuple, or a list"
        )
    selector: Any = key_selector
    if isinstance(selector, (int, str)) and not isinstance(selector, bool):
        selector = FieldKeySelector(selector)
    elif isinstance(selector, (list, tuple)):
        selector = FieldKeySelector(*selector)
    else:
        check_function(call, selector, KeySelector, 1)
        check_single_result(call, selector, "get_key")
    return KeySpec(selector, key_type)


def _holds_an_array(type_info: TypeInformation) -> bool:
    if isinstance(type_info, (TupleTypeInfo, RowTypeInfo)):
        return any(_holds_an_array(field) for field in type_info.get_field_types())
    return isinstance(type_info, (ObjectArrayTypeInfo, PrimitiveArrayTypeInfo))


def check_output_type(call: str, given: object, parameter: str = "output_type") -> None:
    """A type is a TypeInformation or None."""
    if given is None or isinstance(given, TypeInformation):
        return
    maker = getattr(given, "__qualname__", "")
    if callable(given) and maker.startswith("Types."):
        raise TypeError(f"the {parameter} of {call} is not called: write {maker}(...) instead of {maker}")
    raise TypeError(f"the {parameter} of {call} must be a type such as Types.INT(), got {given!r}")
