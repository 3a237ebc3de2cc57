"""The contract of window assigners: an assigner says which windows a record belongs to."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ekorn.functions.windows.trigger_contract import Trigger
from ekorn.functions.windows.window_arithmetic import SessionGap, WindowGrid
from ekorn.functions.windows.window_values import Window
from ekorn.types.serializer import TypeSerializer

if TYPE_CHECKING:
    from ekorn.functions.runtime_context import RuntimeContext

T = TypeVar("T")
W = TypeVar("W", bound=Window)
M = TypeVar("M", bound=Window)


class WindowAssigner(ABC, Generic[T, W]):
    """Assigns records to windows."""

    class WindowAssignerContext(ABC):
        """Gives an assigner the clock and the operator's runtime context."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return the operator's runtime context, with the keyed state of the record's key."""

    @abstractmethod
    def assign_windows(self, element: T, timestamp: int, context: WindowAssignerContext) -> Collection[W]:
        """Return the windows of a record."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """Return the trigger that is used unless the program sets one."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """Return the serializer that writes windows to checkpoints."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return whether windows end by event time; otherwise they end by processing time."""

    def arithmetic(self) -> WindowGrid | SessionGap | None:
        """Return the arithmetic that determines the windows of every record, or None if `assign_windows` must be asked.

        Window operators choose their layout by it. A subclass of a built-in assigner may assign other windows, so the
        built-in assigners answer for their exact type only.
        """
        return None


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Assigns windows that may merge, such as sessions."""

    class MergeCallback(ABC, Generic[M]):
        """Receives the windows that are to be merged."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[M], merge_result: M) -> None:
            """Replace windows by one."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Call `callback.merge` for each group of windows that become one."""


class WindowStagger(enum.Enum):
    """Whether the windows of all subtasks end at the same time."""

    ALIGNED = "aligned"
    RANDOM = "random"  # every subtask shifts its windows by a random amount
    NATURAL = "natural"  # a subtask's windows begin when its first record arrives

    def get_stagger_offset(self, current_processing_time: int, size: int, chance: Callable[[], float]) -> int:
        """Return how far a subtask shifts its windows. Called with the subtask's first record."""
        if self is WindowStagger.NATURAL:
            return current_processing_time % size
        return int(chance() * size) if self is WindowStagger.RANDOM else 0
