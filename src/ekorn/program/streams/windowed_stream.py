"""Windows of a stream: `WindowedStream` per key, `AllWindowedStream` without keys.

Trigger, evictor and lateness are set step by step. The function that evaluates the windows draws the operator.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ekorn.errors import InvalidProgramError, UnsupportedOperationError
from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.record_fields import Field
from ekorn.functions.record_functions import AggregateFunction, FoldFunction, Function, ReduceFunction, WrappingFunction
from ekorn.functions.rolling_aggregates import MaxByFunction, MaxFunction, MinByFunction, MinFunction, SumFunction
from ekorn.functions.windows.assigner_contract import MergingWindowAssigner, WindowAssigner
from ekorn.functions.windows.evictors import Evictor
from ekorn.functions.windows.named_aggregates import AllWindowRows, NamedAggregates, WindowRows
from ekorn.functions.windows.time_assigners import TimeWindowAssigner
from ekorn.functions.windows.trigger_contract import Trigger
from ekorn.functions.windows.window_functions import (
    AllWindowFunction,
    CalledAllWindowFunction,
    CalledProcessAllWindowFunction,
    CalledProcessWindowFunction,
    CalledWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from ekorn.graph.specs import (
    AggregateContents,
    FoldContents,
    Hash,
    KeySpec,
    ListContents,
    ReduceContents,
    WindowContents,
    WindowSpec,
)
from ekorn.graph.stream_graph import Edge, Node
from ekorn.program.checks.argument_checks import check_function, check_instance, check_output_type, check_single_result
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.checks.pickling_check import check_sendable
from ekorn.program.streams.column_types import AnyAggregate, adapted, row_type_from, window_fields
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.stream_display import DrawnInNotebooks
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type_info import row_type_info
from ekorn.types.time import Duration, Time, millis_of
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
    from ekorn.program.streams.keyed_stream import KeyedStream

S = TypeVar("S", bound="Windowed")


class Windowed(DrawnInNotebooks, SuggestsMethods):
    """The common part of windows with and without keys."""

    _apply_kind: type[Function]
    _process_kind: type[Function]
    _called: tuple[type[WrappingFunction], type[WrappingFunction]]  # what calls a plain function: `apply`, `process`
    _arity: int  # the number of arguments of a plain function

    def __init__(self, stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        check_instance("window", window_assigner, WindowAssigner)
        self._stream = stream
        self._assigner = window_assigner
        self._trigger = window_assigner.get_default_trigger(stream.get_execution_environment())
        self._evictor: Evictor[Any, Any] | None = None
        self._lateness_ms = 0
        self._late_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that the stream belongs to."""
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """Return the type of the records."""
        return DataStream.get_type(self._stream)

    # ------------------------------------------------------------------------------ when, and with what

    def trigger(self: S, trigger: Trigger[Any, Any]) -> S:
        """Replace the assigner's own trigger."""
        check_instance("trigger", trigger, Trigger)
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise UnsupportedOperationError(
                f"{self._assigner!r} merges windows, but can_merge() of {trigger!r} is False; "
                "use a trigger that can merge, such as EventTimeTrigger or CountTrigger"
            )
        self._trigger = trigger
        return self

    def evictor(self: S, evictor: Evictor[Any, Any]) -> S:
        """Remove records when a window fires. With an evictor a window keeps all its records, also for aggregates."""
        check_instance("evictor", evictor, Evictor)
        self._evictor = evictor
        return self

    def allowed_lateness(self: S, time_ms: int | Time | Duration | timedelta) -> S:
        """Keep windows for this long after their end, and fire again for each late record.

        Args:
            time_ms: Milliseconds, or a length of time.
        """
        lengths = int | Time | Duration | timedelta
        if isinstance(time_ms, bool) or not isinstance(time_ms, lengths) or millis_of(time_ms) < 0:
            raise ValueError(f"allowed_lateness() takes a duration of at least 0, got {time_ms!r}")
        self._lateness_ms = millis_of(time_ms)
        return self

    def side_output_late_data(self: S, output_tag: OutputTag) -> S:
        """Emit records that are too late to a side output of the result."""
        check_instance("side_output_late_data", output_tag, OutputTag)
        self._late_tag = output_tag
        return self

    # ------------------------------------------------------------------------------ aggregates

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: Any = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Reduce the records of each window as they arrive, keeping one value.

        Args:
            reduce_function: A `ReduceFunction` or a callable of two records.
            window_function: Called with the value when a window fires; without it the value is the result. A plain
                function is called as by `apply`, or as by `process` if its parameter is named `context` or `ctx`.
            output_type: The type of the results.
        """
        check_function("reduce", reduce_function, ReduceFunction, 2)
        check_single_result("reduce", reduce_function, "reduce")
        own_type = self._stream._type() if window_function is None else None
        return self._result("reduce", ReduceContents(reduce_function), window_function, output_type or own_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction | None = None,
        window_function: Any = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
        **aggregates: AnyAggregate,
    ) -> DataStream:
        """Aggregate the records of each window as they arrive, keeping one accumulator.

        With aggregates by name, such as `aggregate(total=Sum("amount"), orders=Count())`, the results are rows of the
        key's fields, `window_start` and `window_end` of time windows in milliseconds, and the aggregates. The stream
        needs a declared row type, and keys that are fields by name. On a stream of columns, tumbling, sliding, session
        and count windows with their default trigger are computed on columns. Sessions whose gap depends on the row, and
        windows with an evictor or another trigger, take rows and give rows.

        Args:
            aggregate_function: The `AggregateFunction`.
            window_function: Called with the aggregate when a window fires; without it the aggregate is the result. A
                plain function is called as in `reduce`.
            accumulator_type: The type of the accumulator.
            output_type: The type of the results.
            aggregates: Aggregates of `ekorn.datastream.columns`, such as `Sum`, by the name of the result,
                instead of all other arguments.
        """
        if aggregates:
            if any(each is not None for each in (aggregate_function, window_function, accumulator_type, output_type)):
                raise TypeError("aggregate() takes an AggregateFunction, or aggregates by name, and not both")
            return self._aggregates_by_name(aggregates)
        check_function("aggregate", aggregate_function, AggregateFunction, None)
        assert aggregate_function is not None, "it was checked"
        check_output_type("aggregate", accumulator_type, "accumulator_type")
        return self._result("aggregate", AggregateContents(aggregate_function), window_function, output_type)

    @abstractmethod
    def _aggregates_by_name(self, aggregates: Mapping[str, AnyAggregate]) -> DataStream:
        """Draw windows with aggregates by name."""

    def fold(
        self,
        initial_value: Any,
        fold_function: Callable[[Any, Any], Any] | FoldFunction,
        window_function: Any = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Fold the records of each window into a copy of an initial value. Merging windows are refused."""
        check_function("fold", fold_function, FoldFunction, 2)
        check_single_result("fold", fold_function, "fold")
        check_sendable("fold", initial_value)
        if isinstance(self._assigner, MergingWindowAssigner):
            raise UnsupportedOperationError(
                f"fold() cannot be used on {self._assigner!r}, which merges windows: two folds cannot be merged; use "
                "aggregate()"
            )
        return self._result("fold", FoldContents(initial_value, fold_function), window_function, output_type)

    def sum(self, position_to_sum: Field = 0) -> DataStream:
        """Emit the window's first record, with the field replaced by the sum."""
        return self._rolling(SumFunction(position_to_sum))

    def min(self, position_to_min: Field = 0) -> DataStream:
        """Emit the window's first record, with the field replaced by the smallest value."""
        return self._rolling(MinFunction(position_to_min))

    def max(self, position_to_max: Field = 0) -> DataStream:
        """Emit the window's first record, with the field replaced by the largest value."""
        return self._rolling(MaxFunction(position_to_max))

    def min_by(self, position_to_min_by: Field = 0, first: bool = True) -> DataStream:
        """Emit the window's record with the smallest field; of equal ones the first, or the last."""
        return self._rolling(MinByFunction(position_to_min_by, first))

    def max_by(self, position_to_max_by: Field = 0, first: bool = True) -> DataStream:
        """Emit the window's record with the largest field; of equal ones the first, or the last."""
        return self._rolling(MaxByFunction(position_to_max_by, first))

    def _rolling(self, function: ReduceFunction) -> DataStream:
        return self._result(repr(function), ReduceContents(function), None, self._stream._type())

    # ------------------------------------------------------------------------------ building the graph

    def _listed(
        self, call: str, function: Any, kind: type[Function], output_type: TypeInformation | None
    ) -> DataStream:
        check_function(call, function, kind, self._arity)
        if not isinstance(function, Function):
            function = self._called[kind is self._process_kind](function)
        return self._result(call, ListContents(), function, output_type)

    def _window_function(self, call: str, function: Any) -> Function:
        """Return the window function behind an incremental one. A plain function is called in place of one."""
        if isinstance(function, self._apply_kind | self._process_kind):
            check_function(call, function, type(function), None)
            return function
        if isinstance(function, Function) or not callable(function):
            names = " or a ".join(kind.__name__ for kind in (self._apply_kind, self._process_kind))
            raise TypeError(f"the window function of {call}() must be a {names}, or a plain function; got {function!r}")
        check_function(call, function, self._apply_kind, self._arity)
        return self._called[_takes_the_context(function, self._arity - 2)](function)

    def _result(
        self, call: str, contents: WindowContents, function: Any, output_type: TypeInformation | None
    ) -> DataStream:
        if function is not None:
            function = self._window_function(call, function)
        check_output_type(call, output_type)
        return self._transform(self._name(function or contents), self._spec(contents, function), output_type)

    def _spec(self, contents: WindowContents, function: Function | None) -> WindowSpec:
        return WindowSpec(
            assigner=self._assigner,
            trigger=self._trigger,
            contents=contents,
            function=function,
            evictor=self._evictor,
            lateness_ms=self._lateness_ms,
            late_tag=None if self._late_tag is None else self._late_tag.tag_id,
        )

    def _named_spec(self, aggregates: Mapping[str, ColumnAggregate], function: Function) -> WindowSpec:
        return self._spec(AggregateContents(NamedAggregates(tuple(aggregates.values()))), function)

    @property
    def _has_bounds(self) -> bool:
        """Whether the windows are known to be spans of time."""
        return isinstance(self._assigner, TimeWindowAssigner)

    def _name(self, evaluates: Any) -> str:
        return f"Window({self._assigner!r}, {type(self._trigger).__name__}, {type(evaluates).__name__})"

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return self._stream._drawn_nodes()

    def __repr__(self) -> str:
        details = [f"evictor {self._evictor!r}"] if self._evictor is not None else []
        details += [f"allowed lateness {self._lateness_ms} ms"] if self._lateness_ms else []
        details += [f"late records to {self._late_tag.tag_id!r}"] if self._late_tag is not None else []
        return f"{type(self).__name__}({', '.join(map(str, [self._stream, self._assigner, self._trigger, *details]))})"

    @abstractmethod
    def _transform(self, name: str, spec: WindowSpec, output_type: TypeInformation | None) -> DataStream:
        """Draw the windows as an operator of the stream."""


class WindowedStream(Windowed):
    """The windows of a keyed stream. Every key has windows of its own.

    Example:
        >>> from ekorn.common import Time
        >>> from ekorn.datastream import StreamExecutionEnvironment
        >>> from ekorn.datastream.window import TumblingEventTimeWindows
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> words = env.from_collection([("a", 1), ("b", 2)])
        >>> windows = words.key_by(lambda w: w[0]).window(TumblingEventTimeWindows.of(Time.seconds(5)))
        >>> windows.reduce(lambda one, other: (one[0], one[1] + other[1])).get_name()
        'Window(TumblingEventTimeWindows(5000, 0), EventTimeTrigger, ReduceContents)'
    """

    _apply_kind, _process_kind = WindowFunction, ProcessWindowFunction
    _called = (CalledWindowFunction, CalledProcessWindowFunction)
    _arity = 3  # key, window or context, records

    def __init__(self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(keyed_stream, window_assigner)
        self._keyed_stream = keyed_stream

    def apply(
        self,
        window_function: WindowFunction[Any, Any, Any, Any] | Callable[[Any, Any, Iterable[Any]], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a `WindowFunction` with all records of a window when the window fires.

        A plain function is called with the key, the window and the records.
        """
        return self._listed("apply", window_function, WindowFunction, output_type)

    def process(
        self,
        process_window_function: ProcessWindowFunction[Any, Any, Any, Any] | Callable[[Any, Any, Iterable[Any]], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a `ProcessWindowFunction` with all records of a window when the window fires.

        A plain function is called with the key, the context and the records.
        """
        return self._listed("process", process_window_function, ProcessWindowFunction, output_type)

    def _aggregates_by_name(self, aggregates: Mapping[str, AnyAggregate]) -> DataStream:
        names, row_type = self._keyed_stream._keys_by_name("aggregate")
        named = adapted(row_type, aggregates)
        rows = window_fields(row_type, names, named, bounds=self._has_bounds)
        spec = self._named_spec(named, WindowRows(rows.field_names(), bounds=self._has_bounds))
        return self._transform(self._name(spec.function), spec, row_type_info(rows))

    def _transform(self, name: str, spec: WindowSpec, output_type: TypeInformation | None) -> DataStream:
        return self._keyed_stream._per_key(name, spec, output_type)


class AllWindowedStream(Windowed):
    """The windows of a stream without keys. All records go to one subtask."""

    _apply_kind, _process_kind = AllWindowFunction, ProcessAllWindowFunction
    _called = (CalledAllWindowFunction, CalledProcessAllWindowFunction)
    _arity = 2  # window or context, records

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream, window_assigner)

    def apply(
        self,
        window_function: AllWindowFunction[Any, Any, Any] | Callable[[Any, Iterable[Any]], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call an `AllWindowFunction` with all records of a window when the window fires.

        A plain function is called with the window and the records.
        """
        return self._listed("apply", window_function, AllWindowFunction, output_type)

    def process(
        self,
        process_window_function: ProcessAllWindowFunction[Any, Any, Any] | Callable[[Any, Iterable[Any]], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a `ProcessAllWindowFunction` with all records of a window when the window fires.

        A plain function is called with the context and the records.
        """
        return self._listed("process", process_window_function, ProcessAllWindowFunction, output_type)

    def _aggregates_by_name(self, aggregates: Mapping[str, AnyAggregate]) -> DataStream:
        declared = self._stream._type()
        if not isinstance(declared, RowTypeInfo):
            raise InvalidProgramError(
                "aggregate() with aggregates by name needs rows of a declared type, such as Types.ROW_NAMED(...); the "
                f"type of this stream is {self._stream._type_text()}"
            )
        row_type = row_type_from(declared, "aggregate")
        named = adapted(row_type, aggregates)
        rows = window_fields(row_type, (), named, bounds=self._has_bounds)
        spec = self._named_spec(named, AllWindowRows(rows.field_names(), bounds=self._has_bounds))
        return self._transform(self._name(spec.function), spec, row_type_info(rows))

    def _transform(self, name: str, spec: WindowSpec, output_type: TypeInformation | None) -> DataStream:
        # Flink: windows without keys are the windows of one key that all records share.
        edges = tuple(edge.partitioned(Hash(ALL_ROWS)) for edge in self._stream._edges)
        graph = self._stream.get_execution_environment()._graph
        node = graph.operator(name, spec, edges, output_type, key=ALL_ROWS, non_parallel=True)
        return DataStream(self._stream.get_execution_environment(), (Edge(node),))


def _the_one_key(record: Any) -> int:
    return 0


ALL_ROWS = KeySpec(_the_one_key)
"""The key of the rows of windows without keys."""


def _takes_the_context(function: Callable[..., Any], place: int) -> bool:
    """Return whether the parameter of a plain function at the place of the window is named after the context."""
    try:
        return list(inspect.signature(function).parameters)[place] in ("context", "ctx")
    except (ValueError, TypeError, IndexError):
        return False  # some builtins have no signature
