"""`ColumnStream`: rows that travel as columns, and the transformations of whole batches.

Every method of `DataStream` works on it as well. A method that takes rows gets rows: the conversion is drawn before the
operator, once for each stream, and is in the plan as `To Rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.errors import InvalidProgramError
from ekorn.functions.batch_function import BatchFunction
from ekorn.functions.dead_letters import DEAD_LETTERS
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.record_functions import FieldKeySelector, FilterFunction, OneFieldSelector, Partitioner
from ekorn.functions.sink_contract import GloballyCommittedSink, Sink, SinkFunction
from ekorn.functions.watermark_strategy import WatermarkStrategy
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.graph.column_specs import (
    BatchLibrary,
    ColumnTimestampsSpec,
    KeyedBatchSpec,
    MapBatchesSpec,
    MapBatchesWithTableSpec,
    SelectColumnsSpec,
    SelectRowsSpec,
    ToRowsSpec,
    WindowAggregateSpec,
)
from ekorn.graph.specs import Custom, Global, Hash, KeySpec, OperatorSpec, Partitioning, SinkFunctionSpec
from ekorn.graph.stream_graph import Edge, Node
from ekorn.program.checks.argument_checks import check_function
from ekorn.program.streams.column_types import (
    checked_library,
    column_names,
    columns_of,
    expression_types,
    is_expression,
    row_type_from,
)
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.data_stream_sink import DataStreamSink
from ekorn.program.streams.key_selection import KeySelection
from ekorn.program.streams.table_stream import TableConnectedStream, TableStream
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type_info import row_type_info
from ekorn.types.data_types import RowField, RowType
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
    from ekorn.program.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
    from ekorn.program.streams.connected_streams import ConnectedStreams
    from ekorn.program.streams.keyed_column_stream import KeyedColumnStream
    from ekorn.program.streams.windowed_stream import AllWindowedStream

__all__ = ["ColumnStream"]

_BATCH_FUNCTIONS = (KeyedBatchSpec, MapBatchesSpec, MapBatchesWithTableSpec)


class ColumnStream(DataStream):
    """A stream of rows in batches of columns.

    Example:
        >>> from ekorn.common import Types
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> type_info = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])
        >>> orders = env.from_collection([("a", 3)], type_info)
        >>> orders.to_columns().row_type.field_names()
        ['customer', 'amount']
    """

    def __init__(self, environment: StreamExecutionEnvironment, edges: tuple[Edge, ...], row_type: RowType) -> None:
        self._column_edges = edges
        self._row_edges: tuple[Edge, ...] | None = None
        self.row_type = row_type
        self._environment = environment

    # ------------------------------------------------------------------------------ as rows

    @property
    def _edges(self) -> tuple[Edge, ...]:  # type: ignore[override]  # drawn where the first operator on rows reads it
        if self._row_edges is None:
            self._row_edges = self._rows_of(self._column_edges)
        return self._row_edges

    def _rows_of(self, edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
        graph = self._environment._graph
        node = graph.operator("To Rows", ToRowsSpec(self.row_type), edges, self._type(), like_input=True)
        return (Edge(node),)

    def _type(self) -> TypeInformation | None:
        return row_type_info(self.row_type)

    def _operator(self, call: str) -> Node:
        return DataStream(self._environment, self._column_edges)._operator(call)

    def to_rows(self) -> DataStream:
        """Return the stream as rows."""
        return DataStream(self._environment, self._edges)

    def to_columns(self, row_type: Any = None, max_rows: int = 65536) -> ColumnStream:
        """Return this stream, which has columns already; with another type, convert it by way of rows."""
        if row_type is None or row_type_from(row_type, "to_columns") == self.row_type:
            return self
        return self.to_rows().to_columns(row_type, max_rows)

    # ------------------------------------------------------------------------------ batch by batch

    def map_batches(
        self,
        func: Callable[[Any], Any] | BatchFunction,
        output_type: Any,
        library: BatchLibrary = "arrow",
    ) -> ColumnStream:
        """Turn each batch of columns into batches of columns.

        Args:
            func: A `BatchFunction` or a callable of one argument, the batch. It returns a batch, an iterable of
                batches, or None. If it returns as many rows as it was given, they keep their timestamps. A pair of an
                `OutputTag` and a batch goes to a side output, whose columns are the type of the tag.
            output_type: The columns of the results: `DataTypes.ROW(...)`, `Types.ROW_NAMED(...)` or a schema of Arrow.
            library: What the function takes and returns: a `RecordBatch` of PyArrow (`arrow`), a DataFrame of `pandas`
                or `polars`, or a dict of `numpy` arrays.
        """
        check_function("map_batches", func, BatchFunction, 1)
        checked_library(library)
        row_type = row_type_from(output_type, "map_batches")
        return self._columns("Map Batches", MapBatchesSpec(func, library, row_type), row_type)

    def filter(self, func: Any) -> DataStream:
        """Keep the rows for which an expression of PyArrow is true, or a function of a row returns true."""
        if is_expression(func):
            expression_types(self.row_type, {"condition": func}, "filter")
            return self._columns("Filter", SelectRowsSpec(func), self.row_type)
        condition: Callable[[Any], bool] | FilterFunction = func
        return super().filter(condition)

    def project(self, *fields: Any, **expressions: Any) -> DataStream:
        """Make columns: some of this stream by name, and others from expressions of PyArrow.

        >>> import pyarrow.compute as pc
        >>> from ekorn.common import Types
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> type_info = Types.ROW_NAMED(["customer", "cents"], [Types.STRING(), Types.LONG()])
        >>> orders = env.from_collection([("a", 250)], type_info).to_columns()
        >>> orders.project("customer", amount=pc.field("cents") / 100.0).row_type.field_names()
        ['customer', 'amount']
        """
        if fields and not expressions and all(isinstance(field, int) for field in fields):
            return super().project(*fields)
        if not fields and not expressions:
            raise ValueError("project() needs at least one column")
        column_names(self.row_type, fields, "project")
        computed = expression_types(self.row_type, expressions, "project")
        chosen = [self.row_type[name] for name in fields]
        row_type = RowType([*chosen, *(RowField(name, each) for name, each in computed.items())])
        columns = (*((name, name) for name in fields), *expressions.items())
        return self._columns("Projection", SelectColumnsSpec(columns, row_type), row_type)

    def assign_timestamps_and_watermarks(self, watermark_strategy: Any) -> DataStream:
        """Give each row a timestamp, and replace the watermarks of the stream.

        With `WatermarkStrategy.with_timestamp_column(...)` and a built-in strategy whole batches are stamped. Others
        take rows.
        """
        column = getattr(watermark_strategy, "timestamp_column", None)
        if isinstance(watermark_strategy, WatermarkStrategy) and column is not None and watermark_strategy.is_built_in:
            column_names(self.row_type, (column,), "with_timestamp_column")
            spec = ColumnTimestampsSpec(watermark_strategy, column)
            return self._columns("Timestamps/Watermarks", spec, self.row_type)
        stamped = super().assign_timestamps_and_watermarks(watermark_strategy)
        return stamped.to_columns(self.row_type)

    def union(self, *streams: DataStream) -> DataStream:
        """Merge this stream with others of the same columns; with a stream of rows, the result is a stream of rows."""
        if all(isinstance(s, ColumnStream) and s.row_type == self.row_type for s in streams):
            edges = self._column_edges
            for stream in streams:
                assert isinstance(stream, ColumnStream)
                if stream._environment is not self._environment:
                    raise InvalidProgramError("union() needs streams of the same environment")
                edges += stream._column_edges
            return ColumnStream(self._environment, edges, self.row_type)
        return super().union(*streams)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """Return a side output of the operator that this stream comes from. Late rows of windows are columns."""
        node = self._operator("get_side_output")
        spec = node.spec
        if isinstance(spec, _BATCH_FUNCTIONS) and isinstance(output_tag, OutputTag) and output_tag != DEAD_LETTERS:
            if not isinstance(output_tag.type_info, RowTypeInfo):
                raise InvalidProgramError(
                    f"a batch function emits columns, and the side output {output_tag.tag_id!r} declares none: give "
                    "its OutputTag the type of its rows, such as Types.ROW_NAMED(['id'], [Types.LONG()])"
                )
            row_type = row_type_from(output_tag.type_info, "get_side_output")
            edge = node.side_output(output_tag.tag_id, columns_of(row_type))
            return ColumnStream(self._environment, (edge,), row_type)
        if isinstance(spec, WindowAggregateSpec) and isinstance(output_tag, OutputTag):
            row_type, tag = spec.input_type, output_tag.tag_id
            if tag == spec.windows.late_tag:
                return ColumnStream(self._environment, (node.side_output(tag, columns_of(row_type)),), row_type)
        return super().get_side_output(output_tag)

    # ------------------------------------------------------------------------------ with a table

    def broadcast_table(self, *keys: str) -> TableStream:
        """Keep the latest row of each key in a table that every subtask has. Connect a stream of columns with it.

        A row of the kind UPDATE_BEFORE or DELETE removes the row with its key.
        """
        return TableStream(self, keys)

    @overload
    def connect(self, ds: TableStream) -> TableConnectedStream: ...

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: Any) -> Any:
        """Bring another stream to the same operator, or the table of `broadcast_table`.

        With a table, `.map_batches(...)` follows, and the stream stays one of columns. Otherwise it becomes rows.
        """
        return TableConnectedStream(self, ds) if isinstance(ds, TableStream) else super().connect(ds)

    # ------------------------------------------------------------------------------ partitioning

    def key_by(self, key_selector: KeySelection, key_type: TypeInformation | None = None) -> Any:
        """Send rows with equal keys to one subtask. With names of columns the stream stays one of columns."""
        fields = key_selector.fields if isinstance(key_selector, FieldKeySelector) else key_selector
        names = (fields,) if isinstance(fields, str) else fields
        if key_type is None and isinstance(names, list | tuple) and names and all(isinstance(n, str) for n in names):
            column_names(self.row_type, tuple(names), "key_by")
            return self._keyed(tuple(str(name) for name in names))
        return super().key_by(key_selector, key_type)

    def _keyed(self, names: tuple[str, ...]) -> KeyedColumnStream:
        return self._kinds.keyed_column_stream(self._environment, self._column_edges, names, self.row_type)

    def partition_custom(
        self, partitioner: Callable[[Any, int], Any] | Partitioner, key_selector: KeySelection
    ) -> DataStream:
        """Send rows to the subtasks that `partitioner(column, number_of_subtasks)` returns, an int for each row."""
        if isinstance(key_selector, str):
            column_names(self.row_type, (key_selector,), "partition_custom")
            check_function("partition_custom", partitioner, Partitioner, 2)
            return self._partitioned(Custom(partitioner, KeySpec(OneFieldSelector(key_selector))))
        return super().partition_custom(partitioner, key_selector)

    def _partitioned(self, partitioning: Partitioning) -> DataStream:
        if isinstance(partitioning, Custom | Hash) and not isinstance(partitioning.key.selector, OneFieldSelector):
            return super()._partitioned(partitioning)
        edges = tuple(edge.partitioned(partitioning) for edge in self._column_edges)
        return ColumnStream(self._environment, edges, self.row_type)

    # ------------------------------------------------------------------------------ windows without keys

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Group all rows of the stream into windows, in one subtask."""
        return self._kinds.all_windowed_column_stream(self, window_assigner)

    # ------------------------------------------------------------------------------ sinks

    def _taken_by(self, sink: Sink[Any]) -> tuple[Sink[Any], tuple[Edge, ...]]:
        by_columns = sink.with_columns(self.row_type)
        return super()._taken_by(sink) if by_columns is None else (by_columns, self._column_edges)

    def _columns_for(self, schema: Any, call: str) -> RowType:
        return self.row_type if schema is None else super()._columns_for(schema, call)

    def _frame(self, job_execution_name: str | None) -> Any:
        from ekorn.connectors.data_frames.pandas_rows import frame_of_batches

        collector = DataStream(self._environment, self._column_edges)
        with collector.execute_and_collect(job_execution_name) as batches:
            return frame_of_batches(list(batches), self.row_type)

    def _written_by(self, sink: Sink[Any]) -> DataStreamSink:
        by_columns = sink.with_columns(self.row_type)
        if by_columns is None:
            return super()._written_by(sink)
        if isinstance(sink, GloballyCommittedSink) != isinstance(by_columns, GloballyCommittedSink):
            raise InvalidProgramError(
                f"{type(sink).__name__}.with_columns() returned {by_columns!r}, which commits in another way; return "
                f"a {type(sink).__name__}, or None to take rows"
            )
        return self._writers(by_columns, self._column_edges)

    def _called(self, sink: SinkFunction[Any]) -> DataStreamSink:
        by_columns = sink.with_columns(self.row_type)
        if by_columns is None:
            return super()._called(sink)
        node = self._environment._graph.sink("Unnamed", SinkFunctionSpec(by_columns), self._column_edges)
        return DataStreamSink(self._environment, node)

    # ------------------------------------------------------------------------------ drawing the graph

    def _columns(self, name: str, spec: OperatorSpec, row_type: RowType, key: KeySpec | None = None) -> ColumnStream:
        """Draw an operator on columns that reads this stream, and return its output."""
        graph = self._environment._graph
        node = graph.operator(name, spec, self._column_edges, columns_of(row_type), key=key)
        return ColumnStream(self._environment, (Edge(node),), row_type)

    def _columns_with(self, name: str, spec: OperatorSpec, row_type: RowType, edges: tuple[Edge, ...]) -> ColumnStream:
        """Draw an operator on columns that also reads other edges, and return its output."""
        second = tuple(replace(edge, input_index=1) for edge in edges)
        graph = self._environment._graph
        node = graph.operator(name, spec, (*self._column_edges, *second), columns_of(row_type))
        return ColumnStream(self._environment, (Edge(node),), row_type)

    def _columns_of_all(self, name: str, spec: OperatorSpec, row_type: RowType, key: KeySpec) -> ColumnStream:
        """Draw an operator on columns that reads all rows in one subtask, and return its output."""
        edges = tuple(edge.partitioned(Global()) for edge in self._column_edges)
        graph = self._environment._graph
        node = graph.operator(name, spec, edges, columns_of(row_type), key=key, non_parallel=True)
        return ColumnStream(self._environment, (Edge(node),), row_type)

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return tuple(edge.source for edge in self._column_edges)


def as_column_stream(environment: StreamExecutionEnvironment, node: Node) -> ColumnStream:
    """Return the output of a source or an operator on columns."""
    from ekorn.columns.row_columns import row_type_of_arrow

    type_info = node.output_type
    assert isinstance(type_info, ColumnsTypeInfo), "the caller looked at the type"
    return ColumnStream(environment, (Edge(node),), row_type_of_arrow(type_info.schema, exact=True))
