"""`ConnectedStreams`: two streams of any types that share an operator, which has a method for each stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.keyed_batch_function import KeyedCoBatchFunction
from ekorn.functions.process_functions import CoProcessFunction, KeyedCoProcessFunction
from ekorn.functions.record_functions import CoFlatMapFunction, CoMapFunction, FieldKeySelector, Function
from ekorn.graph.specs import CoFlatMapSpec, CoMapSpec, CoProcessSpec, KeySpec, OperatorSpec
from ekorn.graph.stream_graph import Edge, Node
from ekorn.program.checks.argument_checks import check_function, check_output_type, check_single_result
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.key_selection import KeySelection
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.program.streams.stream_display import DrawnInNotebooks
from ekorn.types.type_information import TypeInformation


class ConnectedStreams(DrawnInNotebooks, SuggestsMethods):
    """Two streams that share an operator and, with keys, its state. Neither stream waits for the other.

    Example:
        >>> from ekorn.datastream import CoMapFunction, StreamExecutionEnvironment
        >>> class Label(CoMapFunction):
        ...     def map1(self, value):
        ...         return f"number {value}"
        ...     def map2(self, value):
        ...         return f"word {value}"
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.from_collection([1]).connect(env.from_collection(["a"])).map(Label()).get_name()
        'Co-Map'
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        for stream in (stream1, stream2):
            if not isinstance(stream, DataStream):
                raise TypeError(f"connect() needs a stream, or the result of broadcast(descriptor); got {stream!r}")
        if stream1.get_execution_environment() is not stream2.get_execution_environment():
            raise InvalidProgramError("connect() needs streams of the same environment")
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: KeySelection,
        key_selector2: KeySelection,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Bring records of both streams with equal keys to one subtask, with state that both share.

        Args:
            key_selector1: Selects the key of a record of the first stream, as in `DataStream.key_by`.
            key_selector2: Selects the key of a record of the second stream.
            key_type: The type of the key.
        """
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(
        self,
        func: CoMapFunction | Callable[[Any], Any],
        output_type: TypeInformation | Callable[[Any], Any] | None = None,
        output_type_of_callables: TypeInformation | None = None,
    ) -> DataStream:
        """Turn each record into one record: `map1` for the first stream, `map2` for the second. None is not emitted.

        Two plain callables may stand for the function: `map(f, g)`, or `map(f, g, output_type)`.
        """
        if _are_callables(func, output_type):
            func, output_type = _TwoMaps(func, output_type), output_type_of_callables
        check_function("map", func, CoMapFunction, None)
        check_single_result("map", func, "map1")
        check_single_result("map", func, "map2")
        return self._transform("Co-Map", CoMapSpec(func), output_type)

    def flat_map(
        self,
        func: CoFlatMapFunction | Callable[[Any], Any],
        output_type: TypeInformation | Callable[[Any], Any] | None = None,
        output_type_of_callables: TypeInformation | None = None,
    ) -> DataStream:
        """Turn each record into any number of records: `flat_map1` for the first stream, `flat_map2` for the second.

        Two plain callables may stand for the function: `flat_map(f, g)`, or `flat_map(f, g, output_type)`.
        """
        if _are_callables(func, output_type):
            func, output_type = _TwoFlatMaps(func, output_type), output_type_of_callables
        check_function("flat_map", func, CoFlatMapFunction, None)
        return self._transform("Co-Flat Map", CoFlatMapSpec(func), output_type)

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction | KeyedCoBatchFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Turn each record into any number of records, with side outputs and access to time.

        With keys the function also has state and timers. A `KeyedCoProcessFunction` needs two keyed streams. A
        `KeyedCoBatchFunction` is called with batches of columns. Its streams need declared row types, and keys that are
        fields by name. The result is a stream of columns.
        """
        if isinstance(func, KeyedCoBatchFunction):
            self._require_keys(func)
            return self._in_batches(func, output_type)
        if isinstance(func, KeyedCoProcessFunction):
            check_function("process", func, KeyedCoProcessFunction, None)
            self._require_keys(func)
        else:
            check_function("process", func, CoProcessFunction, None)
        name = "Keyed Co-Process" if self._keys() else "Co-Process"
        return self._transform(name, CoProcessSpec(func), output_type)

    # ------------------------------------------------------------------------------ building the graph

    def _transform(self, name: str, spec: OperatorSpec, output_type: Any) -> DataStream:
        check_output_type(name, output_type)
        keys, environment = self._keys(), self.stream1.get_execution_environment()
        edges = both_inputs(self.stream1, self.stream2)
        key = keys[0] if keys else None
        node = environment._graph.operator(name, spec, edges, output_type, key=key, keys=keys)
        return DataStream(environment, (Edge(node),))

    def _in_batches(self, func: KeyedCoBatchFunction, output_type: Any) -> DataStream:
        check_function("process", func, KeyedCoBatchFunction, None)
        assert isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream), "it was checked before"
        first, second = self.stream1._with_column_keys("process"), self.stream2._with_column_keys("process")
        return first._process_together(second, func, output_type)  # type: ignore[no-any-return]

    def _keys(self) -> tuple[KeySpec, ...]:
        """Return the key specs of both streams, or an empty tuple unless both are keyed."""
        first, second = self.stream1, self.stream2
        if not isinstance(first, KeyedStream) or not isinstance(second, KeyedStream):
            return ()
        if first._key.type_info != second._key.type_info:
            raise InvalidProgramError(
                f"connect(): the keys of the two streams are of type {_type_text(first._key)} and of type "
                f"{_type_text(second._key)}, so they would never be equal; pass the same key_type to both key_by calls"
            )
        fields = [s.fields for s in (first._key.selector, second._key.selector) if isinstance(s, FieldKeySelector)]
        if len(fields) == 2 and len(fields[0]) != len(fields[1]):
            raise InvalidProgramError(
                f"connect(): the keys of the two streams are tuples of {len(fields[0])} and of {len(fields[1])} "
                "fields, so they would never be equal; pass the same number of fields to both key_by calls"
            )
        return first._key, second._key

    def _require_keys(self, func: Any) -> None:
        keyed = [isinstance(stream, KeyedStream) for stream in (self.stream1, self.stream2)]
        if all(keyed):
            return
        missing = (
            "neither stream is keyed" if not any(keyed) else f"the {'second' if keyed[0] else 'first'} one is not keyed"
        )
        kind = "KeyedCoBatchFunction" if isinstance(func, KeyedCoBatchFunction) else "KeyedCoProcessFunction"
        raise InvalidProgramError(
            f"process(): {type(func).__name__} is a {kind} and needs two keyed streams, but {missing}; "
            "call key_by before connect(), or key_by(selector1, selector2) after connect()"
        )

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return (*self.stream1._drawn_nodes(), *self.stream2._drawn_nodes())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.stream1!r}, {self.stream2!r})"


def both_inputs(first: DataStream, second: DataStream) -> tuple[Edge, ...]:
    """Return the edges of two streams into one operator."""
    return tuple(
        replace(edge, input_index=number) for number, stream in enumerate((first, second)) for edge in stream._edges
    )


def _type_text(key: KeySpec) -> str:
    return "any Python object (undeclared)" if key.type_info is None else str(key.type_info)


def _are_callables(first: Any, second: Any) -> bool:
    """Return whether both arguments are plain callables, not function objects or their classes, and not types."""
    others = (Function, TypeInformation)
    return all(
        callable(each) and not isinstance(each, others) and not (isinstance(each, type) and issubclass(each, Function))
        for each in (first, second)
    )


class _TwoMaps(CoMapFunction):
    """Two plain callables as one function."""

    def __init__(self, first: Any, second: Any) -> None:
        self._first, self._second = first, second

    def map1(self, value: Any) -> Any:
        return self._first(value)

    def map2(self, value: Any) -> Any:
        return self._second(value)


class _TwoFlatMaps(CoFlatMapFunction):
    """Two plain callables as one function."""

    def __init__(self, first: Any, second: Any) -> None:
        self._first, self._second = first, second

    def flat_map1(self, value: Any) -> Any:
        return self._first(value)

    def flat_map2(self, value: Any) -> Any:
        return self._second(value)
