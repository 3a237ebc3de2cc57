"""Assigners of windows that no time ends: the global window, and windows of a fixed number of records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.nesting_triggers import PurgingTrigger
from ekorn.functions.windows.record_triggers import CountTrigger
from ekorn.functions.windows.time_triggers import EndOfStreamTrigger, NeverTrigger
from ekorn.functions.windows.trigger_contract import Trigger
from ekorn.functions.windows.window_arithmetic import CountGrid
from ekorn.functions.windows.window_values import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
)
from ekorn.types.serializer import TypeSerializer

_Context = WindowAssigner.WindowAssignerContext


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Assigns every record to the global window. That window never ends, so the program must set a trigger."""

    def __init__(self) -> None:
        self._trigger: Trigger[Any, GlobalWindow] = NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """Return an assigner. Unless the program sets a trigger, the window never fires."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """Return an assigner whose default trigger fires once, at the end of the input."""
        assigner = GlobalWindows()
        assigner._trigger = EndOfStreamTrigger()
        return assigner

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[GlobalWindow]:
        """Return the global window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        """Return the trigger that never fires, or the one that fires at the end of the input."""
        return self._trigger

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        """Return the serializer of the global window."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False: the window does not end."""
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


class CountWindows(WindowAssigner[Any, CountWindow]):
    """The base of count windows: the records of a key are numbered from 0 in order of arrival."""

    def __init__(self, window_size: int) -> None:
        if isinstance(window_size, bool) or not isinstance(window_size, int) or window_size <= 0:
            raise ValueError(
                f"{type(self).__name__}: the size must be a positive number of records, got {window_size!r}"
            )
        self.window_size = window_size
        self._counter = ValueStateDescriptor("_window/count")

    def _next_number(self, context: _Context) -> int:
        counter = context.get_runtime_context().get_state(self._counter)
        number: int = counter.value() or 0
        counter.update(number + 1)
        return number

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        """Return a trigger that fires and purges when the window is full."""
        # Flink: PyFlink keeps the contents of full windows for ever. A full window gets no more records: purge it.
        return PurgingTrigger(CountTrigger(self.window_size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        """Return the serializer of count windows."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False: time does not matter."""
        return False

    def counts(self) -> CountGrid | None:
        """Return the numbers of the records at which windows start and end; None for a class of the program."""
        slide = getattr(self, "window_slide", self.window_size)
        return CountGrid(self.window_size, slide) if type(self) in _BUILT_IN else None

    def is_own_trigger(self, trigger: Trigger[Any, Any]) -> bool:
        """Return whether a trigger is the default one."""
        nested = trigger.nested_trigger if type(trigger) is PurgingTrigger else None
        return type(nested) is CountTrigger and nested.window_size == self.window_size


class CountTumblingWindowAssigner(CountWindows):
    """Assigns tumbling windows of `window_size` records of a key."""

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Return an assigner of windows of `window_size` records."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[CountWindow]:
        """Return the window that holds the record's number."""
        return [CountWindow(self._next_number(context) // self.window_size)]

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(CountWindows):
    """Assigns sliding windows of `window_size` records of a key. Only full windows fire."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size)
        if isinstance(window_slide, bool) or not isinstance(window_slide, int) or window_slide <= 0:
            raise ValueError(
                f"{type(self).__name__}: the slide must be a positive number of records, got {window_slide!r}"
            )
        self.window_slide = window_slide

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Return an assigner of windows of `window_size` records, one starting every `window_slide` records."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[CountWindow]:
        """Return all windows that hold the record's number."""
        number, slide = self._next_number(context), self.window_slide
        first = max(0, -(-(number - self.window_size + 1) // slide))
        return [CountWindow(i) for i in range(first, number // slide + 1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"


_BUILT_IN = (CountTumblingWindowAssigner, CountSlidingWindowAssigner)
