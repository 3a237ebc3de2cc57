"""`KeyedStream`: records with keys, and the transformations with state per key."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Literal, NoReturn, ParamSpec

from ekorn.errors import InvalidProgramError, UnsupportedOperationError
from ekorn.functions.keyed_batch_function import KeyedBatchFunction
from ekorn.functions.latest_values import QueryableRecords
from ekorn.functions.process_functions import KeyedProcessFunction
from ekorn.functions.record_fields import Field
from ekorn.functions.record_functions import (
    FieldKeySelector,
    FilterFunction,
    FlatMapFunction,
    FoldFunction,
    MapFunction,
    ReduceFunction,
)
from ekorn.functions.rolling_aggregates import MaxByFunction, MaxFunction, MinByFunction, MinFunction, SumFunction
from ekorn.functions.state.state_descriptors import (
    FoldingStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.count_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from ekorn.functions.windows.time_assigners import Length
from ekorn.graph.specs import (
    CollectSpec,
    FilterSpec,
    FlatMapSpec,
    FoldSpec,
    Hash,
    KeySpec,
    MapSpec,
    OperatorSpec,
    PrintSpec,
    ProcessSpec,
    ReduceSpec,
    WithStateSpec,
)
from ekorn.graph.stream_graph import Edge, Node
from ekorn.program.checks.argument_checks import check_function, check_single_result, warn_if_nothing_is_returned
from ekorn.program.checks.pickling_check import check_sendable
from ekorn.program.streams.column_types import AnyAggregate, row_type_from
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.data_stream_sink import DataStreamSink
from ekorn.program.streams.key_selection import KeySelection
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type_info import row_type_info
from ekorn.types.data_types import RowType
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
    from ekorn.program.streams.window_joins import IntervalJoin
    from ekorn.program.streams.windowed_stream import WindowedStream


P = ParamSpec("P")

_NO_PARTITIONING = (
    "{call}() on a keyed stream: key_by already decides which subtask receives a record; call {call}() before key_by, "
    "or on the result of a transformation"
)
_NO_OPERATOR = (
    "{call}() needs an operator, and key_by has none: call {call}() before key_by, for the operator before it, "
    "or on the result of the transformation after it"
)


def _refused(method: Callable[Concatenate[Any, P], Any], message: str) -> Callable[Concatenate[Any, P], NoReturn]:
    """Return a method of `KeyedStream` that takes the arguments of a method of `DataStream`, and only raises."""
    call = method.__name__

    def refuse(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> NoReturn:
        """Raise: a keyed stream does not support this."""
        raise UnsupportedOperationError(message.format(call=call))

    refuse.__name__ = call
    refuse.__qualname__ = f"KeyedStream.{call}"
    signature = inspect.signature(method).replace(return_annotation="NoReturn")
    refuse.__signature__ = signature  # type: ignore[attr-defined]  # typeshed does not declare it on functions
    return refuse


class KeyedStream(DataStream):
    """A stream whose records have keys. Records with equal keys go to one subtask, which keeps state per key.

    Functions and sinks see the records. `get_type` and `execute_and_collect` return rows of key and record.
    Partitionings, `cache` and the settings of an operator, such as `name` and `uid`, raise
    `UnsupportedOperationError`: a keyed stream is not the output of an operator.

    Example:
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda r: r[0]).sum(1).get_name()
        'Reduce'
    """

    def __init__(self, environment: StreamExecutionEnvironment, edges: tuple[Edge, ...], key: KeySpec) -> None:
        super().__init__(environment, tuple(edge.partitioned(Hash(key)) for edge in edges))
        self._origin = edges
        self._key = key

    def get_type(self) -> TypeInformation:
        """Return the type of a row of key and record."""
        types = [self._key.type_info or Types.PICKLED_BYTE_ARRAY(), super().get_type()]
        return Types.ROW_NAMED(["f0", "f1"], types)

    def key_by(self, key_selector: KeySelection, key_type: TypeInformation | None = None) -> KeyedStream:
        """Give the records other keys, instead of these."""
        return DataStream(self._environment, self._origin).key_by(key_selector, key_type)

    # ------------------------------------------------------------------------------ with state per key

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Turn each record into one record. The function may keep state per key."""
        check_function("map", func, MapFunction, 1)
        check_single_result("map", func, "map")
        warn_if_nothing_is_returned("map", func, "map", "every result is None")
        return self._per_key("Map", MapSpec(func), output_type)

    def flat_map(
        self, func: Callable[[Any], Any] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Turn each record into any number of records. The function may keep state per key."""
        check_function("flat_map", func, FlatMapFunction, 1)
        warn_if_nothing_is_returned("flat_map", func, "flat_map", "nothing is emitted")
        return self._per_key("FlatMap", FlatMapSpec(func), output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keep the records for which the function returns true. The function may keep state per key."""
        check_function("filter", func, FilterFunction, 1)
        check_single_result("filter", func, "filter")
        warn_if_nothing_is_returned("filter", func, "filter", "no record passes")
        return self._per_key("Filter", FilterSpec(func), self._type())

    def process(  # type: ignore[override]  # Flink: a keyed stream takes its own kind of process function
        self, func: KeyedProcessFunction | KeyedBatchFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Turn each record into any number of records, with state, timers, side outputs and access to time.

        A `KeyedBatchFunction` is called with the records that have arrived, as columns. The stream needs a declared row
        type, and keys that are fields by name. The result is a stream of columns.
        """
        if isinstance(func, KeyedBatchFunction):
            result: DataStream = self._with_column_keys("process").process(func, output_type)
            return result
        check_function("process", func, KeyedProcessFunction, None)
        return self._per_key("KEYED PROCESS", ProcessSpec(func), output_type)

    def as_queryable_state(
        self,
        queryable_state_name: str,
        state_descriptor: ValueStateDescriptor | ReducingStateDescriptor | FoldingStateDescriptor | None = None,
    ) -> QueryableStateStream:
        """Keep the records of each key in a state that clients outside the job can read.

        Args:
            queryable_state_name: The name under which clients read the state, unique within the job.
            state_descriptor: A value state keeps the latest record, which is the default. A reducing or folding state
                keeps what its function makes of all records.
        """
        kinds = (ValueStateDescriptor, ReducingStateDescriptor, FoldingStateDescriptor)
        if state_descriptor is None:
            state_descriptor = ValueStateDescriptor(queryable_state_name, self._type())
        elif not isinstance(state_descriptor, kinds):
            raise TypeError(
                "as_queryable_state() takes a descriptor of value, reducing or folding state, got "
                f"{state_descriptor!r}; to query other kinds of state, keep it in a function and call set_queryable()"
            )
        descriptor = copy.copy(state_descriptor)
        if descriptor.queryable_name != queryable_state_name:
            descriptor.set_queryable(queryable_state_name)
        kept = self.process(QueryableRecords(descriptor)).name(f"Queryable state: {queryable_state_name}")
        return QueryableStateStream(
            self._environment, kept._operator("as_queryable_state"), descriptor, self._key.type_info
        )

    # ------------------------------------------------------------------------------ rolling aggregates

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Emit for each record the function's result for the key's last result and the record."""
        check_function("reduce", func, ReduceFunction, 2)
        check_single_result("reduce", func, "reduce")
        warn_if_nothing_is_returned("reduce", func, "reduce", "every result is None")
        return self._per_key("Reduce", ReduceSpec(func), self._type())

    def sum(self, position_to_sum: Field = 0) -> DataStream:
        """Emit for each record the key's first record, with the field replaced by the sum so far."""
        return self._per_key("Reduce", ReduceSpec(SumFunction(position_to_sum)), self._type())

    def min(self, position_to_min: Field = 0) -> DataStream:
        """Emit for each record the key's first record, with the field replaced by the smallest value so far."""
        return self._per_key("Reduce", ReduceSpec(MinFunction(position_to_min)), self._type())

    def max(self, position_to_max: Field = 0) -> DataStream:
        """Emit for each record the key's first record, with the field replaced by the largest value so far."""
        return self._per_key("Reduce", ReduceSpec(MaxFunction(position_to_max)), self._type())

    def min_by(self, position_to_min_by: Field = 0, first: bool = True) -> DataStream:
        """Emit for each record the key's record with the smallest field so far.

        Args:
            position_to_min_by: The position or name of the field.
            first: Whether the earliest of records with equal fields is kept, or the latest.
        """
        return self._per_key("Reduce", ReduceSpec(MinByFunction(position_to_min_by, first)), self._type())

    def max_by(self, position_to_max_by: Field = 0, first: bool = True) -> DataStream:
        """Emit for each record the key's record with the largest field so far. The arguments are those of `min_by`."""
        return self._per_key("Reduce", ReduceSpec(MaxByFunction(position_to_max_by, first)), self._type())

    def fold(
        self,
        initial_value: Any,
        func: Callable[[Any, Any], Any] | FoldFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit for each record the function's result for the key's accumulator and the record.

        Args:
            initial_value: The accumulator before the first record. Every key gets a copy.
            func: A `FoldFunction` or a callable of accumulator and record.
            output_type: The type of the accumulator.
        """
        check_function("fold", func, FoldFunction, 2)
        check_single_result("fold", func, "fold")
        check_sendable("fold", initial_value)
        return self._per_key("Fold", FoldSpec(initial_value, func), output_type)

    def map_with_state(
        self, func: Callable[[Any, Any], tuple[Any, Any]], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Map with one value of state per key: `func(record, state) -> (result, state)`.

        The state is None before the key's first record. Returning None as the state removes it.
        """
        return self._with_state("map", "MapWithState", func, output_type)

    def flat_map_with_state(
        self, func: Callable[[Any, Any], tuple[Any, Any]], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Map to any number of records with one value of state per key: `func(record, state) -> (iterable, state)`."""
        return self._with_state("flat_map", "FlatMapWithState", func, output_type)

    def filter_with_state(self, func: Callable[[Any, Any], tuple[bool, Any]]) -> DataStream:
        """Filter with one value of state per key: `func(record, state) -> (keep, state)`."""
        return self._with_state("filter", "FilterWithState", func, self._type())

    # ------------------------------------------------------------------------------ windows

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Group the records of each key into windows."""
        return self._kinds.windowed_stream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Group the records of each key into windows of `size` records; with a slide, one begins every `slide` records.

        Only full windows fire.
        """
        if slide == 0:
            return self.window(CountTumblingWindowAssigner.of(size))
        return self.window(CountSlidingWindowAssigner.of(size, slide))

    def time_window(self, size: Length, slide: Length | None = None) -> WindowedStream:
        """Group the records of each key into time windows by the environment's time characteristic, as in Flink 1.x."""
        return self.window(self._time_windows(size, slide))

    def interval_join(self, other: KeyedStream) -> IntervalJoin:
        """Join with records of another keyed stream that are close in time: `.between(...).process(...)`."""
        return self._kinds.interval_join(self, other)

    # ------------------------------------------------------------------------------ where records go

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write each record to standard output."""
        # Flink: the identifier is dropped on keyed streams.
        return self._sink("Print to Std. Out", PrintSpec())

    def _collector(self) -> Node:
        # Flink: collecting a keyed stream returns rows of key and record.
        return self._environment._graph.sink("Data stream collect sink", CollectSpec(self._key), self._edges)

    # ------------------------------------------------------------------------------ not on keyed streams

    forward = _refused(DataStream.forward, _NO_PARTITIONING)
    rebalance = _refused(DataStream.rebalance, _NO_PARTITIONING)
    rescale = _refused(DataStream.rescale, _NO_PARTITIONING)
    shuffle = _refused(DataStream.shuffle, _NO_PARTITIONING)
    global_ = _refused(DataStream.global_, _NO_PARTITIONING)
    partition_custom = _refused(DataStream.partition_custom, _NO_PARTITIONING)
    name = _refused(DataStream.name, _NO_OPERATOR)
    get_name = _refused(DataStream.get_name, _NO_OPERATOR)
    uid = _refused(DataStream.uid, _NO_OPERATOR)
    set_uid_hash = _refused(DataStream.set_uid_hash, _NO_OPERATOR)
    set_parallelism = _refused(DataStream.set_parallelism, _NO_OPERATOR)
    set_max_parallelism = _refused(DataStream.set_max_parallelism, _NO_OPERATOR)
    set_description = _refused(DataStream.set_description, _NO_OPERATOR)
    force_non_parallel = _refused(DataStream.force_non_parallel, _NO_OPERATOR)
    set_buffer_timeout = _refused(DataStream.set_buffer_timeout, _NO_OPERATOR)
    start_new_chain = _refused(DataStream.start_new_chain, _NO_OPERATOR)
    disable_chaining = _refused(DataStream.disable_chaining, _NO_OPERATOR)
    slot_sharing_group = _refused(DataStream.slot_sharing_group, _NO_OPERATOR)

    def broadcast(self, *args: Any) -> NoReturn:
        """Raise: a keyed stream does not support this."""
        raise UnsupportedOperationError(_NO_PARTITIONING.format(call="broadcast"))

    def cache(self) -> NoReturn:
        """Raise: a keyed stream does not support this."""
        raise UnsupportedOperationError("cache() on a keyed stream: call cache() on the result of an operator")

    # ------------------------------------------------------------------------------ aggregates of columns by name

    def aggregate(
        self, *, emits: Literal["each", "last"] = "each", queryable_name: str | None = None, **aggregates: AnyAggregate
    ) -> DataStream:
        """Aggregate the rows of each key: `aggregate(total=Sum("amount"), orders=Count())`.

        The stream needs a declared row type, and keys that are fields by name. The state is that of
        `KeyedColumnStream.aggregate`: a savepoint taken on rows restores on columns, and the other way round.

        Args:
            emits: For streams of columns. On rows every record gives a result.
            queryable_name: The name under which clients outside the job read the aggregates of a key, as a row.
            aggregates: Aggregates of `ekorn.datastream.columns`, such as `Sum`, by the name of the result.
        """
        names, row_type = self._keys_by_name("aggregate")
        spec = self._kinds.aggregate_spec(row_type, names, aggregates, emits, queryable_name, on_columns=False)
        return self._per_key("Aggregate", spec, row_type_info(spec.row_type))

    def _with_column_keys(self, call: str) -> Any:
        """Return this stream as columns with the same keys."""
        names, row_type = self._keys_by_name(call)
        return DataStream(self._environment, self._origin).to_columns(row_type).key_by(names)

    def _keys_by_name(self, call: str) -> tuple[tuple[str, ...], RowType]:
        """Return the key fields and the columns of the rows.

        Raises:
            InvalidProgramError: The stream has no declared row type, or its keys are not fields by name.
        """
        selector, declared = self._key.selector, self._type()
        fields = selector.fields if isinstance(selector, FieldKeySelector) else ()
        if not fields or not all(isinstance(field, str) for field in fields) or not isinstance(declared, RowTypeInfo):
            raise InvalidProgramError(
                f"{call}() needs rows of a declared type with keys by name, such as "
                f"key_by('customer').aggregate(total=Sum('amount')); the type of this stream is {self._type_text()}"
            )
        return tuple(str(field) for field in fields), row_type_from(declared, call)

    # ------------------------------------------------------------------------------ building the graph

    def _per_key(self, name: str, spec: OperatorSpec, output_type: TypeInformation | None) -> DataStream:
        return self._transform(name, spec, output_type, key=self._key)

    def _with_state(
        self,
        form: Literal["map", "filter", "flat_map"],
        name: str,
        func: Callable[[Any, Any], tuple[Any, Any]],
        output_type: TypeInformation | None,
    ) -> DataStream:
        call = f"{form}_with_state"
        if isinstance(func, (MapFunction, FilterFunction, FlatMapFunction)):
            raise TypeError(
                f"{call}() needs a callable of record and state, got {func!r}; a function object gets its state in "
                "open()"
            )
        check_function(call, func, ReduceFunction, 2)
        check_single_result(call, func, "reduce")
        return self._per_key(name, WithStateSpec(form, func), output_type)


class QueryableStateStream(DataStreamSink):
    """The result of `as_queryable_state`. It can be named and tuned as a sink, and not be transformed further."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        node: Node,
        descriptor: StateDescriptor,
        key_type: TypeInformation | None,
    ) -> None:
        super().__init__(environment, node)
        self._descriptor = descriptor
        self._key_type = key_type

    def get_queryable_state_name(self) -> str:
        """Return the name under which clients read the state."""
        assert self._descriptor.queryable_name is not None, "as_queryable_state names the state"
        return self._descriptor.queryable_name

    def get_state_descriptor(self) -> StateDescriptor:
        """Return the descriptor that a client needs."""
        return self._descriptor

    def get_key_type(self) -> TypeInformation | None:
        """Return the declared type of the keys, or None."""
        return self._key_type

    def __repr__(self) -> str:
        return f"QueryableStateStream({self.get_queryable_state_name()!r})"
