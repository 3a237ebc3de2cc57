"""What users implement to evaluate windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tamias.functions.process_functions import Emitted
from tamias.functions.record_functions import Function

if TYPE_CHECKING:
    from tamias.functions.state_stores import KeyedStateStore

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
        """Yield, or return an iterable of, what the records of a window become."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Yield, or return an iterable of, what the records of a window become."""


class _WindowContext(ABC, Generic[CW]):
    @abstractmethod
    def window(self) -> CW:
        """The window that is evaluated."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The wall clock, in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The operator's watermark."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and this window; it must be cleared in `clear`. Not with windows that merge."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key, over all its windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a key, with its time, and state of the window and of the key.

    Emit with ``yield value``, and to a side output with ``yield output_tag, value``.
    """

    class Context(_WindowContext[CW]):
        """Handed to `process` and `clear`."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Take the records of a window; behind a reduce or an aggregate, its one result."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """The window is over: clear the state of the window here."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """The same for a stream without keys."""

    class Context(_WindowContext[CW]):
        """Handed to `process` and `clear`."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Take the records of a window; behind a reduce or an aggregate, its one result."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """The window is over: clear the state of the window here."""


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Joins two records with equal keys in one window."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> OUT:
        """What the two records become."""


class FlatJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Joins two records with equal keys in one window, giving any number of results."""

    @abstractmethod
    def join(self, first: IN1, second: IN2) -> Iterable[OUT]:
        """Yield, or return an iterable of, what the two records become."""


class CoGroupFunction(Function, Generic[IN1, IN2, OUT]):
    """Takes the records of a key in a window from both streams; either side may be empty."""

    @abstractmethod
    def co_group(self, first: Iterable[IN1], second: Iterable[IN2]) -> Iterable[OUT]:
        """Yield, or return an iterable of, what the two groups become."""


class ProcessJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Takes pairs of an interval join."""

    class Context(ABC):
        """Handed to `process_element`."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Timestamp of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Timestamp of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Timestamp of the pair: the higher one."""

    @abstractmethod
    def process_element(self, left: IN1, right: IN2, ctx: ProcessJoinFunction.Context) -> Emitted:
        """Take a pair."""


AnyWindowFunction = (
    WindowFunction[Any, Any, Any, Any]
    | ProcessWindowFunction[Any, Any, Any, Any]
    | AllWindowFunction[Any, Any, Any]
    | ProcessAllWindowFunction[Any, Any, Any]
)
