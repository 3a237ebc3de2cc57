"""`KeyedColumnStream`: columns with keys, and the aggregates per key; and the aggregates of keyed rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ekorn.errors import InvalidProgramError
from ekorn.functions.aggregate_state import AggregateStateDescriptor
from ekorn.functions.keyed_batch_function import KeyedBatchFunction, KeyedCoBatchFunction
from ekorn.functions.process_functions import KeyedProcessFunction
from ekorn.functions.record_functions import FieldKeySelector
from ekorn.functions.sink_contract import Sink, SinkFunction
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.graph.column_specs import KeyedBatchSpec, RollingAggregateSpec
from ekorn.graph.specs import Hash, KeySpec, OperatorSpec
from ekorn.graph.stream_graph import Edge
from ekorn.program.checks.argument_checks import check_function
from ekorn.program.streams.column_stream import ColumnStream
from ekorn.program.streams.column_types import AnyAggregate, adapted, columns_of, result_fields, row_type_from
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.data_stream_sink import DataStreamSink
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
    from ekorn.program.streams.windowed_column_stream import WindowedColumnStream

__all__ = ["KeyedColumnStream", "aggregate_spec"]


class KeyedColumnStream(KeyedStream):
    """A stream of columns whose rows have keys: the values of some columns, as a tuple.

    Transformations of a `KeyedStream` take rows, and so does their state.
    """

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        edges: tuple[Edge, ...],
        names: tuple[str, ...],
        row_type: RowType,
    ) -> None:
        self._environment = environment
        self._key = KeySpec(FieldKeySelector(*names))
        self._names = names
        self._columns = ColumnStream(environment, edges, row_type)
        self._row_edges: tuple[Edge, ...] | None = None
        self.row_type = row_type

    @property
    def _edges(self) -> tuple[Edge, ...]:  # type: ignore[override]  # drawn where the first operator on rows reads it
        if self._row_edges is None:
            self._row_edges = tuple(edge.partitioned(Hash(self._key)) for edge in self._columns._edges)
        return self._row_edges

    @property
    def _origin(self) -> tuple[Edge, ...]:  # type: ignore[override]
        return self._columns._edges

    def key_by(self, key_selector: Any, key_type: Any = None) -> Any:
        """Give the rows other keys, instead of these."""
        return self._columns.key_by(key_selector, key_type)

    def to_rows(self) -> KeyedStream:
        """Return the stream as rows with the same keys."""
        return KeyedStream(self._environment, self._columns._edges, self._key)

    def aggregate(
        self, *, emits: Literal["each", "last"] = "each", queryable_name: str | None = None, **aggregates: AnyAggregate
    ) -> ColumnStream:
        """Aggregate the rows of each key: `aggregate(total=Sum("amount"), orders=Count())`.

        The results have the key columns and a column for each aggregate. In BATCH mode there is one for each key.

        Args:
            emits: A result for `each` row, or for the `last` row of each key and batch. How many rows a batch has
                depends on the load, so `last` gives the same last result for a key, and not the same number of results.
            queryable_name: The name under which clients outside the job read the aggregates of a key, as a row.
            aggregates: Aggregates of `ekorn.datastream.columns`, such as `Sum`, by the name of the result.
        """
        spec = aggregate_spec(self.row_type, self._names, aggregates, emits, queryable_name, on_columns=True)
        return self._columns_per_key("Aggregate", spec, spec.row_type)

    def process(  # type: ignore[override]  # a batch function gives columns
        self, func: KeyedProcessFunction | KeyedBatchFunction, output_type: Any = None
    ) -> DataStream:
        """Process the rows of each key with state and timers.

        Args:
            func: A `KeyedBatchFunction`, which is called with batches of columns for all keys in them, or a
                `KeyedProcessFunction`, which gets rows.
            output_type: The columns of the results of a batch function, as `map_batches` takes them. By default they
                are those of its `result_type`, which are the columns of this stream unless the function has others.
        """
        if not isinstance(func, KeyedBatchFunction):
            return super().process(func, output_type)
        check_function("process", func, KeyedBatchFunction, None)
        given = func.result_type(self.row_type, self._names) if output_type is None else output_type
        row_type = row_type_from(given, "process")
        return self._columns_per_key(
            "KEYED PROCESS", KeyedBatchSpec(func, self._names, self.row_type, row_type), row_type
        )

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedColumnStream:
        """Group the rows of each key into windows."""
        return self._kinds.windowed_column_stream(self, window_assigner)

    def _keys_by_name(self, call: str) -> tuple[tuple[str, ...], RowType]:
        return self._names, self.row_type

    def _written_by(self, sink: Sink[Any]) -> DataStreamSink:
        if sink.with_columns(self.row_type) is None:
            return super()._written_by(sink)
        return self._by_key()._written_by(sink)

    def _called(self, sink: SinkFunction[Any]) -> DataStreamSink:
        return super()._called(sink) if sink.with_columns(self.row_type) is None else self._by_key()._called(sink)

    def _columns_per_key(self, name: str, spec: OperatorSpec, row_type: RowType) -> ColumnStream:
        """Draw an operator on columns that reads the rows by key, and return its output."""
        return self._by_key()._columns(name, spec, row_type, key=self._key)

    def _with_column_keys(self, call: str) -> KeyedColumnStream:
        return self

    def _process_together(self, other: KeyedColumnStream, func: KeyedCoBatchFunction, output_type: Any) -> ColumnStream:
        """Draw a batch function over this stream and another one, and return its output."""
        mine, others = ([stream.row_type[name].data_type for name in stream._names] for stream in (self, other))
        if [each.nullable() for each in mine] != [each.nullable() for each in others]:
            raise InvalidProgramError(
                f"process(): the key columns of the two streams are of the types {mine} and {others}, so they would "
                "never be equal; convert the columns of one stream with project()"
            )
        row_type = row_type_from(output_type, "process")
        edges = tuple(
            replace(edge, input_index=number)
            for number, stream in enumerate((self, other))
            for edge in stream._by_key()._column_edges
        )
        spec = KeyedBatchSpec(func, self._names, self.row_type, row_type, other._names)
        graph, keys = self._environment._graph, (self._key, other._key)
        node = graph.operator("Keyed Co-Process", spec, edges, columns_of(row_type), key=self._key, keys=keys)
        return ColumnStream(self._environment, (Edge(node),), row_type)

    def _by_key(self) -> ColumnStream:
        edges = tuple(edge.partitioned(Hash(self._key)) for edge in self._columns._column_edges)
        return ColumnStream(self._environment, edges, self.row_type)


def aggregate_spec(
    row_type: RowType,
    keys: tuple[str, ...],
    aggregates: Mapping[str, AnyAggregate],
    emits: Literal["each", "last"],
    queryable_name: str | None,
    *,
    on_columns: bool,
) -> RollingAggregateSpec:
    """Return the arguments of `aggregate`, checked and as a value."""
    if emits not in ("each", "last"):
        raise ValueError(f"aggregate() takes emits='each' or emits='last', got {emits!r}")
    named = adapted(row_type, aggregates)
    fields = result_fields(row_type, keys, named)
    AggregateStateDescriptor("aggregates", tuple(named.items()), queryable_name)  # refuses a name that is none
    return RollingAggregateSpec(
        tuple(named.items()), keys, row_type, RowType(fields), emits, on_columns, queryable_name
    )
