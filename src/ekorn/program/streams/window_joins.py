"""Joins of two streams: by window (`join`, `co_group`), and by distance in time (`interval_join`).

The records of both streams are tagged with their side and go to one operator as one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ekorn.errors import InvalidProgramError
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.record_functions import Function, KeySelector, WrappingFunction
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.evictors import Evictor
from ekorn.functions.windows.time_assigners import Length
from ekorn.functions.windows.trigger_contract import Trigger
from ekorn.functions.windows.window_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
    WindowFunction,
)
from ekorn.graph.plan import key_text
from ekorn.graph.specs import IntervalJoinSpec, KeySpec, MapSpec
from ekorn.graph.stream_graph import Edge, Node
from ekorn.operators.results import PROCESS_RESULTS
from ekorn.program.checks.argument_checks import check_function, check_instance, check_output_type, check_single_result
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.key_selection import KeySelection, key_spec
from ekorn.program.streams.keyed_stream import KeyedStream
from ekorn.program.streams.stream_display import DrawnInNotebooks
from ekorn.types.time import millis_of
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.program.streams.windowed_stream import WindowedStream

LEFT, RIGHT = 0, 1
Tagged = tuple[int, Any]  # side, record


# --------------------------------------------------------------------------------------- two streams as one


class _Tag:
    """Turns a record into a pair of its side and itself."""

    def __init__(self, side: int) -> None:
        self._side = side

    def __call__(self, record: Any) -> Tagged:
        return self._side, record


class _KeyOfSide(KeySelector):
    """Selects the key of a tagged record with the selector of its side."""

    def __init__(self, left: Any, right: Any) -> None:
        self._selectors = (left, right)
        self._select = tuple(s.get_key if isinstance(s, KeySelector) else s for s in self._selectors)

    def open(self, runtime_context: RuntimeContext) -> None:
        for selector in self._selectors:
            if isinstance(selector, Function):
                selector.set_runtime_context(runtime_context)
                selector.open(runtime_context)

    def get_key(self, value: Tagged) -> Any:
        return self._select[value[0]](value[1])


def _both(call: str, left: DataStream, right: DataStream, left_key: KeySpec, right_key: KeySpec) -> KeyedStream:
    """Merge both streams into one stream of tagged records, keyed."""
    environment = left.get_execution_environment()
    if right.get_execution_environment() is not environment:
        raise InvalidProgramError(f"{call}() needs streams of the same environment")
    if left_key.type_info is not None and right_key.type_info not in (None, left_key.type_info):
        raise InvalidProgramError(
            f"{call}() compares keys of types {left_key.type_info} and {right_key.type_info}; they must have the same "
            "type"
        )
    key = KeySpec(_KeyOfSide(left_key.selector, right_key.selector), left_key.type_info or right_key.type_info)
    edges: tuple[Edge, ...] = ()
    for side, stream in ((LEFT, left), (RIGHT, right)):
        node = environment._graph.operator("Map", MapSpec(_Tag(side)), stream._edges, None, like_input=True)
        edges += (Edge(node),)
    return KeyedStream(environment, edges, key)


# ----------------------------------------------------------------------------------------------- by window

S = TypeVar("S", bound="_TwoStreams")


class _TwoStreams(DrawnInNotebooks, SuggestsMethods):
    """Two streams whose records meet in windows, where their keys are equal."""

    _call = ""

    def __init__(self, first: DataStream, second: DataStream) -> None:
        check_stream(self._call, second)
        self._first, self._second = first, second
        self._keys: list[KeySpec] = []

    def where(self: S, key_selector: KeySelection, key_type: TypeInformation | None = None) -> S:
        """Set the key of the first stream."""
        self._keys = [key_spec("where", key_selector, key_type)]
        return self

    def equal_to(self: S, key_selector: KeySelection, key_type: TypeInformation | None = None) -> S:
        """Set the key of the second stream."""
        if len(self._keys) != 1:
            raise InvalidProgramError(f"{self._call}(): call where() before equal_to()")
        self._keys.append(key_spec("equal_to", key_selector, key_type))
        return self

    def _windowed(self, assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        if len(self._keys) != 2:
            raise InvalidProgramError(f"{self._call}(): call where() and equal_to() before window()")
        return _both(self._call, self._first, self._second, *self._keys).window(assigner)

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return (*self._first._drawn_nodes(), *self._second._drawn_nodes())

    def __repr__(self) -> str:
        keys = [f"{call} {key_text(key)}" for call, key in zip(("where", "equal_to"), self._keys, strict=False)]
        return f"{type(self).__name__}({', '.join([repr(self._first), repr(self._second), *keys])})"


class JoinedStreams(_TwoStreams):
    """Two streams to be joined: `a.join(b).where(...).equal_to(...).window(...).apply(...)`."""

    _call = "join"

    def window(self, assigner: WindowAssigner[Any, Any]) -> JoinedWindows:
        """Join records that are in the same window."""
        return JoinedWindows(self._windowed(assigner))


class CoGroupedStreams(_TwoStreams):
    """Two streams to be grouped: `a.co_group(b).where(...).equal_to(...).window(...).apply(...)`."""

    _call = "co_group"

    def window(self, assigner: WindowAssigner[Any, Any]) -> CoGroupedWindows:
        """Group records that are in the same window."""
        return CoGroupedWindows(self._windowed(assigner))


W = TypeVar("W", bound="_BothWindows")


class _BothWindows(DrawnInNotebooks, SuggestsMethods):
    """The windows of two streams."""

    def __init__(self, windows: WindowedStream) -> None:
        self._windows = windows

    def trigger(self: W, trigger: Trigger[Any, Any]) -> W:
        """Replace the assigner's own trigger. The trigger sees records as pairs of side (0 or 1) and record."""
        self._windows.trigger(trigger)
        return self

    def evictor(self: W, evictor: Evictor[Any, Any]) -> W:
        """Remove records when a window fires. The evictor sees records as pairs of side (0 or 1) and record."""
        self._windows.evictor(evictor)
        return self

    def allowed_lateness(self: W, time_ms: int) -> W:
        """Keep windows for this long after their end, and fire again for each late record."""
        self._windows.allowed_lateness(time_ms)
        return self

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return self._windows._drawn_nodes()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._windows!r})"


class JoinedWindows(_BothWindows):
    """The windows of a join."""

    def apply(
        self,
        function: Callable[[Any, Any], Any] | JoinFunction[Any, Any, Any] | FlatJoinFunction[Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call the function with every pair of a left and a right record of a key in a window.

        A `JoinFunction` or a callable returns one result for a pair, a `FlatJoinFunction` any number.
        """
        if not isinstance(function, FlatJoinFunction):
            check_function("apply", function, JoinFunction, 2)
            check_single_result("apply", function, "join")
        return self._windows.apply(_Join(function), output_type)


class CoGroupedWindows(_BothWindows):
    """The windows of a co-group."""

    def apply(
        self,
        function: Callable[[Any, Any], Iterable[Any]] | CoGroupFunction[Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call the function once per key and window with the records of both streams. Either side may be empty."""
        check_function("apply", function, CoGroupFunction, 2)
        return self._windows.apply(_CoGroup(function), output_type)


class _Join(WrappingFunction, WindowFunction[Tagged, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Tagged]) -> Iterable[Any]:
        left, right = _sides(inputs)
        function = self.wrapped
        if isinstance(function, FlatJoinFunction):
            return _flat_results(function, left, right)
        join = function.join if isinstance(function, JoinFunction) else function
        return [join(one, other) for one in left for other in right]


def _flat_results(function: FlatJoinFunction[Any, Any, Any], left: list[Any], right: list[Any]) -> list[Any]:
    """Return the results of all pairs; refuse a single value, whose parts would become results."""
    found: list[Any] = []
    for one in left:
        for other in right:
            results = function.join(one, other)
            if results is not None:
                if results.__class__ not in PROCESS_RESULTS.known:
                    PROCESS_RESULTS.check(results, f"{type(function).__qualname__.rpartition('<locals>.')[2]}.join")
                found.extend(results)
    return found


class _CoGroup(WrappingFunction, WindowFunction[Tagged, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Tagged]) -> Iterable[Any]:
        function = self.wrapped
        group = function.co_group if isinstance(function, CoGroupFunction) else function
        return group(*_sides(inputs)) or ()


def _sides(inputs: Iterable[Tagged]) -> tuple[list[Any], list[Any]]:
    sides: tuple[list[Any], list[Any]] = ([], [])
    for side, record in inputs:
        sides[side].append(record)
    return sides


# ------------------------------------------------------------------------------------------ by distance in time


class IntervalJoin(DrawnInNotebooks, SuggestsMethods):
    """Two keyed streams to be joined by time: `a.interval_join(b).between(lower, upper).process(...)`."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        if not isinstance(right, KeyedStream):
            raise TypeError(f"interval_join() needs a keyed stream, got {right!r}; call key_by first")
        self._left, self._right = left, right

    def between(self, lower_bound: Length, upper_bound: Length) -> IntervalJoined:
        """Join records if the right timestamp minus the left one lies between the bounds, both inclusive."""
        return IntervalJoined(self._left, self._right, millis_of(lower_bound), millis_of(upper_bound))

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return (*self._left._drawn_nodes(), *self._right._drawn_nodes())

    def __repr__(self) -> str:
        return f"IntervalJoin({self._left!r}, {self._right!r})"


class IntervalJoined(DrawnInNotebooks, SuggestsMethods):
    """An interval join with its bounds."""

    def __init__(self, left: KeyedStream, right: KeyedStream, lower_ms: int, upper_ms: int) -> None:
        if lower_ms > upper_ms:
            raise ValueError(f"between(): the lower bound of {lower_ms} ms is above the upper bound of {upper_ms} ms")
        self._left, self._right = left, right
        self._lower_ms, self._upper_ms = lower_ms, upper_ms
        self._late: list[OutputTag | None] = [None, None]

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Exclude pairs that are exactly the lower bound apart."""
        self._lower_ms += 1
        return self

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Exclude pairs that are exactly the upper bound apart."""
        self._upper_ms -= 1
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Emit left records behind the watermark to a side output of the result."""
        check_instance("side_output_left_late_data", output_tag, OutputTag)
        self._late[LEFT] = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Emit right records behind the watermark to a side output of the result."""
        check_instance("side_output_right_late_data", output_tag, OutputTag)
        self._late[RIGHT] = output_tag
        return self

    def process(
        self, process_join_function: ProcessJoinFunction[Any, Any, Any], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Call the function with every pair, once, when its second member arrives."""
        check_function("process", process_join_function, ProcessJoinFunction, None)
        check_output_type("process", output_type)
        if self._lower_ms > self._upper_ms:
            raise ValueError(
                "the interval is empty: no time lies between its exclusive bounds; widen the bounds of between()"
            )
        tags = [None if tag is None else tag.tag_id for tag in self._late]
        spec = IntervalJoinSpec(self._lower_ms, self._upper_ms, process_join_function, *tags)
        left, right = (DataStream(s.get_execution_environment(), s._origin) for s in (self._left, self._right))
        both = _both("interval_join", left, right, self._left._key, self._right._key)
        return both._per_key("Interval Join", spec, output_type)

    def _drawn_nodes(self) -> tuple[Node, ...]:
        return (*self._left._drawn_nodes(), *self._right._drawn_nodes())

    def __repr__(self) -> str:
        return f"IntervalJoined({self._left!r}, {self._right!r}, {self._lower_ms} to {self._upper_ms} ms)"


def check_stream(call: str, stream: Any) -> None:
    """Check that the other side of a join is a stream."""
    if not isinstance(stream, DataStream):
        raise TypeError(f"{call}() needs a stream, got {stream!r}")
