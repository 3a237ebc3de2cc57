"""The functions that programs implement to evaluate windows and joins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ekorn.functions.process_functions import Emitted, SideOutputContext
from ekorn.functions.record_functions import Function, WrappingFunction

if TYPE_CHECKING:
    from ekorn.functions.state.state_stores import KeyedStateStore

IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
CW = TypeVar("CW")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results of a window, or return an iterable of them."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results of a window, or return an iterable of them."""


class _WindowContext(SideOutputContext, Generic[CW]):
    @abstractmethod
    def window(self) -> CW:
        """Return the window that is evaluated or cleared."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time, in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's watermark."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return the state of this key and window. Clear it in `clear`. Not available with windows that merge."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the state of this key, shared by all its windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key, with access to time and to the state of the window and of the key.

    Emit with ``yield value``, and to a side output with ``yield output_tag, value`` or `context.output`.
    """

    class Context(_WindowContext[CW]):
        """The context of `process` and `clear`."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results of a window. After a reduce or an aggregate, `elements` is its one result."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear the state of a window that is over."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys, with access to time and state.

    Emit with ``yield value``, and to a side output with ``yield output_tag, value`` or `context.output`.
    """

    class Context(_WindowContext[CW]):
        """The context of `process` and `clear`."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Yield the results of a window. After a reduce or an aggregate, `elements` is its one result."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear the state of a window that is over."""


class CalledWindowFunction(WrappingFunction, WindowFunction[Any, Any, Any, Any]):
    """Calls a plain function in place of a `WindowFunction`."""

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return self.wrapped(key, window, inputs)  # type: ignore[no-any-return]


class CalledProcessWindowFunction(WrappingFunction, ProcessWindowFunction[Any, Any, Any, Any]):
    """Calls a plain function in place of a `ProcessWindowFunction`."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return self.wrapped(key, context, elements)  # type: ignore[no-any-return]


class CalledAllWindowFunction(WrappingFunction, AllWindowFunction[Any, Any, Any]):
    """Calls a plain function in place of an `AllWindowFunction`."""

    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return self.wrapped(window, inputs)  # type: ignore[no-any-return]


class CalledProcessAllWindowFunction(WrappingFunction, ProcessAllWindowFunction[Any, Any, Any]):
    """Calls a plain function in place of a `ProcessAllWindowFunction`."""

    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return self.wrapped(context, elements)  # type: ignore[no-any-return]


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Joins two records with equal keys in one window."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> OUT:
        """Return the result of two records."""


class FlatJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Joins two records with equal keys in one window, with any number of results."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> Iterable[OUT]:
        """Yield the results of two records, or return an iterable of them."""


class CoGroupFunction(Function, Generic[IN1, IN2, OUT]):
    """Evaluates the records of a key in a window from both streams. Either side may be empty."""

    @abstractmethod
    def co_group(self, first: Iterable[IN1], second: Iterable[IN2]) -> Iterable[OUT]:
        """Yield the results of two groups, or return an iterable of them."""


class ProcessJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Processes the pairs of an interval join."""

    class Context(SideOutputContext):
        """The context of `process_element`: timestamps of the pair, and side outputs."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the timestamp of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the timestamp of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the timestamp of the pair: the higher of the two."""

    @abstractmethod
    def process_element(self, left: IN1, right: IN2, ctx: ProcessJoinFunction.Context) -> Emitted:
        """Yield the results of a pair, or return an iterable of them."""


AnyWindowFunction = (
    WindowFunction[Any, Any, Any, Any]
    | ProcessWindowFunction[Any, Any, Any, Any]
    | AllWindowFunction[Any, Any, Any]
    | ProcessAllWindowFunction[Any, Any, Any]
)
